/** When each event is written. */
export const moments = {
  'run.started': 'First of all, when a run is created.',
  'run.resumed': 'When a process takes over a run that it did not start, or starts working on it again.',
  'run.completed': 'When every step has ended, and none that counts has failed.',
  'run.failed': 'When every step has ended, and one that counts has failed; or when the budget is used up.',
  'run.cancelled': 'When everything has ended after a request to cancel.',
  'step.started': 'When an attempt of a step begins. For a child workflow: when its steps may start.',
  'step.completed': 'When a step has ended well.',
  'step.failed': 'When a step has failed and is not tried again.',
  'step.cancelled': 'When a step that was under way has been ended from outside, and nothing of it is left.',
  'step.skipped': 'When a step is not going to run.',
  'step.retrying': 'When an attempt has failed and there will be another.',
  'step.interrupted': 'By a resume, for each step that was at work when its process died.',
  'step.suspended': 'When a step waits and gives up its place among the running ones.',
  'step.resumed': 'When a wait is over and the step works again; its code may run again from the top.',
  'timer.set': 'When a step begins to sleep.',
  'timer.fired': 'When a sleep, a backoff or a timeout is over.',
  'approval.requested': 'When a gate asks its question.',
  'approval.given': 'When an answer to it was taken from the inbox.',
  'signal.received': 'When a signal was taken from the inbox, whether or not a step waits for it yet.',
  'cancel.requested': 'When a person, the keyboard or an exhausted budget asks the run to stop.',
};

const error = 'What went wrong: the same fields everywhere, see below.';
const steps = 'Paths of all steps in their stable topological order: the places of the canonical order.';

/** What each field says. */
export const fields = {
  'run.started.format': 'The version of this format.',
  'run.started.workflow': 'The name of the workflow.',
  'run.started.source':
    "The file that defines it, relative to the project's root; for a module with several workflows with `#` and the export.",
  'run.started.input': 'The input, checked and with its defaults.',
  'run.started.steps': steps,
  'run.started.forkedFrom': 'The run that this one goes on from, and the first step that runs again.',
  'run.resumed.invalidated': 'Paths of steps whose earlier end no longer counts: they run again.',
  'run.resumed.steps': `If the definition has other steps now. ${steps}`,
  'run.completed.output': 'What the run gives back.',
  'run.failed.error': `The first cause. ${error}`,
  'run.failed.step': 'The step that failed first.',
  'run.cancelled.reason': 'What the request said.',
  'step.started.fingerprint': 'A hash of what defines the step.',
  'step.started.input': 'The input of a child workflow, checked and with its defaults.',
  'step.completed.output': 'What the step gives to those after it.',
  'step.failed.error': error,
  'step.cancelled.reason': 'Why: the request, or which step failed.',
  'step.skipped.fingerprint': 'A hash of what defines the step.',
  'step.skipped.reason':
    'Its condition was false; a dependency did not complete; another step failed and nothing new starts; or the run was cancelled.',
  'step.skipped.because': 'The step that it was skipped for.',
  'step.retrying.error': error,
  'step.retrying.delayMs': 'How long until the next attempt.',
  'step.suspended.on': 'What it waits for.',
  'step.suspended.wait': 'The number of the `ctx` call, from 0; 0 for a gate.',
  'step.suspended.signal': 'The name of the signal.',
  'timer.set.timer': 'The number of the `ctx` call.',
  'timer.set.ms': 'How long it takes, from this event on.',
  'timer.fired.timer':
    'The number of the `ctx` call; or the backoff, the limit of the attempt or the limit of the step.',
  'approval.requested.message': 'The question.',
  'approval.requested.choices': 'What may be answered. `reject` fails the step.',
  'approval.given.choice': 'The answer.',
  'approval.given.by': 'Who gave it.',
  'approval.given.comment': 'What they added.',
  'signal.received.name': 'Its name.',
  'signal.received.payload': 'What came with it; `null` if nothing did.',
  'signal.received.by': 'Who sent it.',
  'cancel.requested.reason': 'Why.',
  'cancel.requested.by': 'Who asked.',
  'cancel.requested.error': 'If present, the run ends as failed with this error instead of as cancelled.',
};

/** The fields of every error in a history. */
export const errorFields = {
  code: 'One of the [codes](errors.md), or the code of the error that a function threw.',
  message: 'What happened.',
  hint: 'What to do about it.',
  name: 'The class of the error that a function threw, such as `TypeError`.',
  stack: 'Where it was thrown.',
  exitCode: 'What a shell script exited with.',
};
