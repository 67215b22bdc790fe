// Ids that no one else makes. Not `crypto.randomUUID`, which pages without HTTPS lack.

/** 128 random bits, as 32 hexadecimal digits. */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
