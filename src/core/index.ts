export {
  type ErrorCode,
  type ErrorData,
  isErrorCode,
  nearest,
  type Position,
  RepriseError,
  toErrorData,
} from './errors.ts';
export type { EventOf, EventType, HistoryEvent, NewEvent } from './events.ts';
export {
  canonicalJson,
  copyJson,
  isJsonObject,
  type Json,
  type JsonObject,
  type Mutable,
  toJson,
} from './json.ts';
export { type DiffLine, diffLines } from './line-diff.ts';
export { fitsPath, fitsWildcard, hooksPattern, isProtected } from './path-patterns.ts';
export {
  type Fields,
  fields,
  firstProblem,
  isName,
  isRecord,
  json,
  list,
  map,
  name,
  names,
  number,
  objectToPath,
  oneOf,
  type SchemaRule,
  text,
  truth,
  wholeFrom,
} from './schema.ts';
export { exhaustedWorkers, failedWorker, patienceMs, signalReasons, stoppedBy } from './stop.ts';
export {
  type Clock,
  type Duration,
  formatDuration,
  type Ids,
  parseDuration,
  type Timestamp,
  toEpochMs,
  toTimestamp,
} from './time.ts';
export { actionOf, parseRule, type ToolRule } from './tools.ts';
