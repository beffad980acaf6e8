export { type ConductedWorld, createConductedWorld } from './conductor.ts';
export type {
  LaneStatus,
  ParkedLane,
  PendingEffect,
  Scheduler,
  SchedulerFactory,
  SchedulerView,
} from './scheduler.ts';
