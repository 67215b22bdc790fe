// What can go wrong, as errors. Their names, members and occasions are those of the
// Python client's `client_demo/errors.py`; codes are the protocol's, in docs/reference/errors.md.

import { CLOSE_ERRORS } from "../machine/constants.js";

/** The base of all errors that the client gives. */
export class ClientError extends Error {
  name = this.constructor.name;
}

/** The client has stopped: by `stop`, or because the server ended it for good. */
export class StoppedError extends ClientError {
  constructor(code, reason) {
    super(reason ?? (code === null ? "The client has stopped." : `The server closed with ${code}.`));
    this.code = code;
  }
}

/** The server's log is another than before: what was read so far is void. */
export class ConversationResetError extends ClientError {
  constructor(reason) {
    super(`The conversation was reset (${reason}); read it again.`);
    this.reason = reason;
  }
}

/** The answer is not the whole answer. */
export class IncompleteAnswerError extends ClientError {
  constructor(text, done) {
    super(`The answer is ${done.status} (${done.reason}).`);
    this.text = text;
    this.done = done;
  }
}

/** An error from the server's catalogue. */
export class CodedError extends ClientError {
  constructor({ code, message, retryable = false, retry_after_ms: afterMs, param }) {
    super(message);
    this.code = code;
    this.retryable = retryable;
    this.retryAfterSeconds = afterMs === undefined || afterMs === null ? null : afterMs / 1_000;
    this.param = param ?? null;
  }
}

/** The server refused a command. */
export class CommandError extends CodedError {}

/** A turn failed: its `done` has the status `failed`. */
export class TurnError extends CodedError {}

/**
 * Why a client has stopped.
 * @param {number | null} code of the close; null where the application stopped it
 * @param {object | null} said the last fault that belongs to no command
 */
export function stopError(code, said) {
  const name = CLOSE_ERRORS[code];
  if (name === undefined) return new StoppedError(code, said?.message);
  if (said?.code === name) return new CommandError(said);
  return new CommandError({ code: name, message: `The server closed with ${code}.` });
}
