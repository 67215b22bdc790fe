"""Ways to break the JavaScript client, one rule each.

By the scenarios in which that is noticed and by what the client then does: in which of
its modules, which text stands there, and what is put in its place.
"""

JAVASCRIPT: dict[str, dict[str, tuple[str, str, str]]] = {
    "cursor": {
        "ignores first": (
            "machine/subscription.js",
            "const first = event.first ?? event.seq;",
            "const first = this.last + 1;",
        ),
        "moves its cursor back": (
            "machine/subscription.js",
            'if (event.seq <= this.last) return "old";',
            'if (event.seq <= this.last) return (this.last = event.seq), "old";',
        ),
        "asks for everything again": (
            "machine/subscription.js",
            "return this.epoch === null ? frame",
            "return true ? frame",
        ),
        "takes events before the verdict": (
            "machine/subscriptions.js",
            "if (!subscription?.attached) return false;\n    subscription.unackedBytes",
            "if (!subscription) return false;\n    subscription.unackedBytes",
        ),
        "does not count what it does not know": (
            "machine/frames.js",
            "null : { frame, isEvent: true }",
            "null : null",
        ),
        "believes the first heartbeat": (
            "machine/subscription.js",
            "const stuck = this.stuckAt === this.last;",
            "const stuck = true;",
        ),
        "counts the gaps of an older connection": (
            "machine/subscriptions.js",
            "      subscription.misses = 0;\n",
            "",
        ),
        "asks for a skip that it knows in part": (
            "machine/subscription.js",
            'event.type === "skip" ? first <= this.last + 1 : ',
            "",
        ),
        "takes a skip over a hole": (
            "machine/subscription.js",
            "? first <= this.last + 1",
            "? true",
        ),
        "counts holes that were closed": (
            "machine/subscription.js",
            '    this.misses = 0;\n    return "fits";',
            '    return "fits";',
        ),
        "asks for ever for what it never had": (
            "machine/subscription.js",
            "    this.misses = 0;\n    this.stuckAt",
            "    this.misses = NaN;\n    this.stuckAt",
        ),
    },
    "commands": {
        "says a message twice": (
            "machine/session.js",
            "else this.#transmit(frame);",
            "else this.#transmit({ ...frame, id: this.#newId() });",
        ),
        "forgets what was not replied to": (
            "machine/session.js",
            "    this.#output.takeFrames();\n",
            "    this.#output.takeFrames();\n    this.#outbox = new Outbox();\n",
        ),
        "takes draining for a refusal": (
            "machine/session.js",
            'reply.error?.code === "draining"',
            "false",
        ),
        "hurries when it was too fast": (
            "machine/outbox.js",
            "this.#pausedUntil = until;",
            "",
        ),
        "forgets the second that came too fast": (
            "machine/outbox.js",
            "    this.#refused.add(id);",
            "    if (this.#refused.size === 0) this.#refused.add(id);",
        ),
        "makes a stop wait": (
            "machine/outbox.js",
            'new Set(["interrupt", ',
            "new Set([",
        ),
        "makes a stop that came too fast wait": (
            "machine/outbox.js",
            "URGENT.has(this.get(id).type) ? 0 : 1",
            "1",
        ),
        "closes late what was opened again": (
            "machine/session.js",
            'frame.type === "close" && this.#subscriptions',
            "false && this.#subscriptions",
        ),
        "asks again for what was refused": (
            "machine/subscriptions.js",
            "subscription.refused || ",
            "",
        ),
        "leaves open what was refused": (
            "machine/subscriptions.js",
            "if (!this.#heldByServer.delete(conversation)) return;",
            "return;",
        ),
        "opens what is to be deleted": (
            "machine/subscriptions.js",
            " || this.#isDeleting(conversation)",
            "",
        ),
        "says what the delete would take along": (
            "machine/outbox.js",
            'type === "close" || URGENT.has(type) ?',
            "true ?",
        ),
        "goes faster than was announced": (
            "machine/pace.js",
            "return this.#perMs === null || this.#missing",
            "return true || this.#missing",
        ),
        "lets a send wait that its interrupt has overtaken": (
            "machine/outbox.js",
            "first(this.#named) ?? ",
            "",
        ),
        "saw what it did not have": (
            "client.js",
            "(isSend ? undefined : this.cursor(conversation)?.last)",
            "(isSend ? undefined : this.cursor(conversation).last + 1)",
        ),
        "waits for no word on how long": (
            "machine/session.js",
            "?? USUAL_WAIT_SECONDS * 1_000",
            "?? 0",
        ),
        "goes on with a burst only when something comes": (
            "machine/outbox.js",
            "return this.#next() === undefined ? null : roomAt;",
            "return null;",
        ),
    },
    "turns": {
        "does not cut": ("fold.js", "=> turn.cut(event)", "=> {}"),
        "cuts by characters": (
            "turn.js",
            "const bytes = encoder.encode(text);",
            "const bytes = new Uint8Array([...text].length);",
        ),
        "shows text behind a cut": (
            "turn.js",
            'return kind === "text" && this.keepThrough !== null;',
            "return false;",
        ),
        "cuts each piece of an answer for itself": (
            "turn.js",
            "left -= Math.min(left, bytes.length);",
            "",
        ),
        "takes any text for the server's": (
            "turn.js",
            "bytes.length === proof.bytes && crc32(bytes) === proof.crc32",
            "true",
        ),
        "looks at the length alone": (
            "turn.js",
            " && crc32(bytes) === proof.crc32",
            "",
        ),
        "never proves a text": (
            "turn.js",
            "    this.prove(event.text);\n    // The",
            "    // The",
        ),
        "does not prove what a cut left": (
            "turn.js",
            "    this.prove(event.text);\n  }\n\n  prove",
            "  }\n\n  prove",
        ),
        "disproves what it had no beginning of": (
            "turn.js",
            "if (!this.whole) return;",
            "",
        ),
        "disproves what was not sent": (
            "fold.js",
            "else if (this.running) this.running.skipped = true;",
            "",
        ),
    },
    "connection": {
        "falls over what is no JSON": (
            "machine/frames.js",
            "} catch (wrong) {\n",
            "} catch (wrong) {\n    throw wrong;\n",
        ),
        "takes what lacks a member": (
            "machine/frames.js",
            "if (!wrong) return",
            "if (isEvent || !wrong) return",
        ),
        "keeps to itself what was no frame": (
            "machine/session.js",
            'if (read.fault) this.#output.notice("fault", { error: read.fault });',
            "if (read.fault) return;",
        ),
        "begins anew with each welcome": (
            "machine/session.js",
            'if (this.phase !== "greeting") return;',
            "",
        ),
        "speaks before the welcome": (
            "machine/session.js",
            'this.phase = "greeting";',
            'this.phase = "online";',
        ),
        "waits for a silent server": (
            "runtime/link.js",
            "else this.#lost(null);",
            "else this.#watch(now + 1_000);",
        ),
        "gives credentials that are outdated": (
            "machine/session.js",
            'for (const refresh of this.#overtaken) this.#done(refresh, "refreshed");',
            "",
        ),
        "drops a server that missed one heartbeat": (
            "runtime/link.js",
            "this.#heartbeatMs * SILENT_HEARTBEATS",
            "this.#heartbeatMs",
        ),
    },
    "reset": {
        "keeps what a reset voids": ("runtime/engine.js", "      each.reset();\n", ""),
        "opens again as if nothing had worked": (
            "runtime/engine.js",
            "this.#reopening.reset();",
            "",
        ),
        "asks for less when it opens again": (
            "machine/subscriptions.js",
            "wanted ?? subscription.wanted",
            "wanted ?? {}",
        ),
    },
    "closes": {
        "waits without jitter": (
            "runtime/backoff.js",
            "this.#random() * windowMs",
            "windowMs",
        ),
        "does not wait": (
            "runtime/backoff.js",
            "atLeastMs + this.#random() * windowMs",
            "0",
        ),
        "dials again where it is no use": (
            "runtime/backoff.js",
            'return "stop"',
            'return "back_off"',
        ),
        "lets a welcome shorten its waits": (
            "runtime/backoff.js",
            "if (upMs < STABLE_SECONDS * 1_000) return;",
            "",
        ),
    },
    "tools": {
        "runs a tool twice": (
            "machine/calls.js",
            "if (this.#asked.has(key(conversation, call))) return false;",
            "",
        ),
        "gives a result once and never again": (
            "machine/session.js",
            "else this.#sendAgain(this.#calls.answered(request));",
            "",
        ),
        "ends the calls of other conversations": (
            "machine/calls.js",
            "asked.conversation === conversation && ",
            "",
        ),
        "takes calls of two conversations for one": (
            "machine/calls.js",
            "`${conversation} ${call}`",
            "`${call}`",
        ),
        "remembers the calls of what was deleted": (
            "machine/session.js",
            "if (said.ok) this.#calls.forget(command.conversation); // else its calls go on",
            "",
        ),
    },
    "deleted": {
        "opens again what somebody deleted": (
            "machine/session.js",
            "else this.#subscriptions.gone(frame);",
            "",
        ),
        "says again what was for it": (
            "machine/session.js",
            "this.#outbox.into(conversation)",
            "[]",
        ),
        "says again what was for one that was deleted meanwhile": (
            "machine/subscriptions.js",
            "&& subscription.resumes",
            "&& false",
        ),
        "ends a fork with what it is a copy of": (
            "machine/outbox.js",
            "WITHIN.has(frame.type)",
            "true",
        ),
        "deletes whatever has the name": (
            "machine/session.js",
            'if (frame.type === "delete" && epoch) frame.epoch = epoch;',
            "",
        ),
        "ends the next of that name": (
            "machine/subscriptions.js",
            "get(conversation)?.epoch === null",
            "get(conversation)?.epoch === 0",
        ),
        "takes a second delete for a failure": (
            "machine/session.js",
            'type !== "delete" || ',
            "true || ",
        ),
    },
    "window": {
        "acknowledges what it did not get": (
            "machine/session.js",
            "seq: subscription.last }",
            "seq: subscription.last + 1 }",
        ),
        "takes a full window for a loss": (
            "machine/subscription.js",
            " || this.unackedBytes >= this.ackEveryBytes",
            "",
        ),
        "never acknowledges": (
            "machine/session.js",
            'this.#say({ type: "ack"',
            'void ({ type: "ack"',
        ),
    },
}
