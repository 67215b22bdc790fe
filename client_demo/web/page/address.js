// The link to a conversation: its name behind the `#` of the page's address, which no
// server gets to see. Whether who has the link may read it is the server's to say.

const ID = /^[A-Za-z0-9_.:-]{1,128}$/;

/** The conversation that the address names, or null. */
export function linked() {
  const id = location.hash.slice(1);
  return ID.test(id) ? id : null;
}

/** Makes the address the link to a conversation. */
export function link(id) {
  history.replaceState(null, "", `#${id}`);
}

/** Runs when somebody put another link into the address. */
export function onLinked(run) {
  addEventListener("hashchange", run);
}
