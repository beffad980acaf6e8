export { confirmLanding, land, moveLanding } from './advance.ts';
export {
  type ConfirmEnd,
  type HandOver,
  handingOver,
  type Landing,
  type LandingRefused,
  type LandingSteps,
  type LockResult,
  landing,
  type MoveEnd,
  type PrepareResult,
  type ProtectedFile,
  type VerifyResult,
} from './landing.ts';
export { prepareLanding, type Verification, type VerificationResult, verifyLanding } from './prepare.ts';
