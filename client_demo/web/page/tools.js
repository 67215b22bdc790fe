// The tools that this page runs when a model asks for them.

/** @type {Record<string, import("../client.js").Tool>} */
export const TOOLS = {
  get_time: {
    description: "Tells the date and the time of day, here or in another time zone.",
    parameters: {
      type: "object",
      properties: {
        timezone: {
          type: "string",
          description: "An IANA time zone, such as Europe/Paris; absent for the user's own.",
        },
      },
    },
    run: ({ timezone }) => getTime(timezone),
  },
};

function getTime(timezone) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zone = timezone && isTimeZone(timezone) ? timezone : own;
  const time = new Intl.DateTimeFormat("en-GB", {
    dateStyle: "full",
    timeStyle: "long",
    timeZone: zone,
  }).format(new Date());
  return { time, timezone: zone };
}

function isTimeZone(name) {
  try {
    return Boolean(new Intl.DateTimeFormat("en", { timeZone: name }));
  } catch {
    return false;
  }
}
