// The boundary to the application's code: what it throws is its own fault, and harms
// nothing here.

/** Calls a function of the application, if it is there; what it throws is reported as uncaught. */
export function call(object, name, ...given) {
  try {
    object[name]?.(...given);
  } catch (fault) {
    report(fault);
  }
}

/** Asks a function of the application; the answer is `otherwise` where it throws, which is reported. */
export function answerOf(question, otherwise) {
  try {
    return question();
  } catch (fault) {
    report(fault);
    return otherwise;
  }
}

function report(fault) {
  // Node has no `reportError`.
  if (globalThis.reportError) globalThis.reportError(fault);
  else queueMicrotask(() => { throw fault; });
}
