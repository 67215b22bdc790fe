// Reads the server's frames. What is no frame of the protocol is told apart here, so that
// all others may rely on the members that a frame must have.

import { CONTROLS, EVENTS } from "./shapes.js";

const IS = {
  any: (value) => value !== undefined,
  string: (value) => typeof value === "string",
  boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number",
  integer: Number.isSafeInteger,
  null: (value) => value === null,
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
};

function checkOf(kind) {
  if (!kind.endsWith("[]")) return IS[kind];
  const each = IS[kind.slice(0, -2)];
  return (value) => Array.isArray(value) && value.every(each);
}

/** The members of a shape: `{name, optional, kinds, is, members}`; `members` of an object's own shape. */
function compiled(shape) {
  return Object.entries(shape).map(([key, of]) => {
    const optional = key.endsWith("?");
    const name = optional ? key.slice(0, -1) : key;
    if (typeof of === "object") return { name, optional, kinds: ["object"], is: IS.object, members: compiled(of) };
    const kinds = of.split("|");
    const checks = kinds.map(checkOf);
    const is = checks.length === 1 ? checks[0] : (value) => checks.some((check) => check(value));
    return { name, optional, kinds, is, members: null };
  });
}

const compiledAll = (shapes) => new Map(Object.entries(shapes).map(([type, shape]) => [type, compiled(shape)]));
const events = compiledAll(EVENTS);
const controls = compiledAll(CONTROLS);
/** What an event of a later version must have, so that its number is used up. */
const unknownEvent = compiled({ conversation: "string", seq: "integer", "first?": "integer" });

/** Where a value differs from a shape, and what should be there; null where it fits. */
function misfit(value, members, path) {
  for (const { name, optional, kinds, is, members: inner } of members) {
    const member = value[name];
    if (optional && (member === undefined || member === null)) continue;
    if (!is(member)) return { param: `${path}.${name}`, kinds, member };
    const within = inner && misfit(member, inner, `${path}.${name}`);
    if (within) return within;
  }
  return null;
}

function fault(code, message, param) {
  return { type: "error", code, message, retryable: false, ...(param && { param }) };
}

function kindOf(value) {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/**
 * Reads one frame.
 * @param {string} text as it came
 * @returns {{frame: object, isEvent: boolean} | {fault: object} | null} `isEvent`: it has a number of its
 *   own; `fault`: why it is no frame of the protocol, as an `error` frame would say it; null: a control
 *   frame of a later version
 */
export function readFrame(text) {
  let frame;
  try {
    frame = JSON.parse(text);
  } catch (wrong) {
    return { fault: fault("bad_json", `The server sent what is no JSON: ${wrong.message}`) };
  }
  if (!IS.object(frame)) return { fault: fault("bad_json", `The server sent ${kindOf(frame)}, and a frame is an object.`) };
  const { type } = frame;
  if (typeof type !== "string") return { fault: fault("bad_frame", "The server sent a frame without a `type`.", "$.type") };
  const ofLog = events.get(type);
  const ofConnection = controls.get(type);
  if (!ofLog && !ofConnection) return misfit(frame, unknownEvent, "$") ? null : { frame, isEvent: true };
  // `error` is both: an event where it is of a conversation.
  const isEvent = ofLog !== undefined && (ofConnection === undefined || (frame.conversation ?? null) !== null);
  const wrong = misfit(frame, isEvent ? ofLog : ofConnection, "$");
  if (!wrong) return { frame, isEvent };
  const must = wrong.kinds.join(" or ");
  const message = `The server sent a frame \`${type}\` whose \`${wrong.param}\` is ${kindOf(wrong.member)}; it must be: ${must}.`;
  return { fault: fault("bad_frame", message, wrong.param) };
}
