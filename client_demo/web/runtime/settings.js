// Which settings a conversation lacks of those that an application wants.

const isEmpty = (value) =>
  value === undefined || value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0);

/** Whether two JSON values say the same; what is empty may be left out. */
function same(a, b) {
  if (isEmpty(a) || isEmpty(b)) return isEmpty(a) && isEmpty(b);
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  return Object.keys({ ...a, ...b }).every((key) => same(a[key], b[key]));
}

/** The wanted members that are otherwise, or null where none is; null takes one back. */
export function change(has, wanted) {
  const members = Object.entries(wanted).filter(([name, value]) => !same(value ?? undefined, has[name] ?? undefined));
  return members.length === 0 ? null : Object.fromEntries(members);
}
