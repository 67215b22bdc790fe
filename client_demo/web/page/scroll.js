// Follows the end of a scroller while the reader is there, and never pulls a reader
// down who went up: any move upwards lets go, being at the very end takes hold.

const AT_END_PX = 2;
const UP_KEYS = new Set(["ArrowUp", "PageUp", "Home"]);

export class Follower {
  #scroller;
  #onChange;
  #top = 0;

  /** @param {(following: boolean) => void} onChange */
  constructor(scroller, onChange) {
    this.#scroller = scroller;
    this.#onChange = onChange;
    this.following = true;
    scroller.addEventListener("wheel", (event) => event.deltaY < 0 && this.#letGo(), { passive: true });
    scroller.addEventListener("keydown", (event) => UP_KEYS.has(event.key) && this.#letGo());
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    // The end moves without new text too: on a resize, or when a part is unfolded.
    new ResizeObserver(() => this.keepUp()).observe(scroller);
  }

  /** Call after the content has grown. */
  keepUp() {
    if (!this.following) return;
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
    this.#top = this.#scroller.scrollTop;
  }

  /** The reader asks for the end. */
  toEnd() {
    this.#set(true);
    this.keepUp();
  }

  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const moved = scrollTop - this.#top; // 0 where keepUp moved it, perhaps before a key
    this.#top = scrollTop;
    if (scrollHeight - scrollTop - clientHeight <= AT_END_PX) {
      if (moved > 0) this.#set(true);
    } else if (moved < -1) {
      this.#letGo();
    }
  }

  #letGo() {
    const { scrollHeight, clientHeight } = this.#scroller;
    if (scrollHeight > clientHeight + AT_END_PX) this.#set(false);
  }

  #set(following) {
    if (this.following === following) return;
    this.following = following;
    this.#onChange(following);
  }
}
