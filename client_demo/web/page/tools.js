// The tools that this page runs when a model asks for them; what changes something
// here runs only when the user allows it.

import { Approvals } from "./approvals.js";
import { setTheme } from "./look.js";

export const approvals = new Approvals();

/** @type {Record<string, import("../client.js").Tool>} */
export const TOOLS = {
  get_time: {
    description: "Tells the date and the time of day, here or in another place.",
    parameters: {
      type: "object",
      properties: {
        place: {
          type: "string",
          description: "A large city, or an IANA time zone; absent for where the user is.",
        },
      },
    },
    run: ({ place }) => getTime(place),
  },
  change_theme: approvals.guard("change_theme", {
    description: "Changes how this page looks. The user is asked first.",
    parameters: {
      type: "object",
      properties: { theme: { type: "string", enum: ["dark", "light", "auto"] } },
      required: ["theme"],
    },
    run: ({ theme }) => {
      setTheme(theme);
      return { theme };
    },
  }),
};

function getTime(place) {
  const timezone = place ? findZone(place) : Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (timezone === undefined) throw new Error(`There is no time zone of the name ${place}.`);
  const time = new Intl.DateTimeFormat("en-GB", {
    dateStyle: "full",
    timeStyle: "long",
    timeZone: timezone,
  }).format(new Date());
  return { time, timezone };
}

/** Zones are named after cities: `America/New_York`. */
function findZone(place) {
  const wanted = place.trim().replaceAll(" ", "_").toLowerCase();
  const zones = Intl.supportedValuesOf("timeZone").map((zone) => [zone, zone.toLowerCase()]);
  const found = zones.find(([, zone]) => zone === wanted || zone.endsWith(`/${wanted}`));
  return found?.[0];
}
