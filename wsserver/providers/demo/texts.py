"""The texts of the demo models, apart from the long one (see `prose`)."""

# ruff: noqa: RUF001 (Chinese punctuation is meant)

WELCOME = """
I am **demo/markdown**, the model you get while no upstream is configured. There is \
no neural network behind me: I am deterministic, offline and free, and I am here so \
that everything around a model can be seen at work.

## Things to try

1. **Stop me** in the middle of a sentence. What you have seen stays, what you have \
not seen was never said.
2. **Pull the plug**: reload the page, close the lid, switch networks. The stream goes \
on exactly where you left it.
3. **Write while I am talking**. Your message waits its turn, or steers me, as you like.
4. Open the same conversation twice and watch both.

## Other demo models

| Model | What it shows |
|:------|:--------------|
| `demo/tools` | calls your tools, two at a time |
| `demo/long` | about 5,000 tokens |
| `demo/emoji` | 👩‍👩‍👧‍👦 and 🏳️‍🌈 cut to pieces on the way |
| `demo/failing-late` | an error in the middle of the answer |
| `demo/stalling` | silence, and what becomes of it |

Options go into the name, as in this one:

```sh
.venv/bin/python -m client_demo chat --model demo/long:tokens=800,tokens_per_second=20
```

> A subscription is a cursor: a position in a log, and nothing else.

Two more things. Numbers stay numbers (3.14159, 1 000 000), and *a little emphasis* \
with some `inline code` and a [link](https://www.rfc-editor.org/rfc/rfc6455) never \
hurt anybody.
"""

CHINESE = """\
# 流式输出

你好！我是演示模型。这里没有真正的神经网络，每一次回答都是事先写好的，因此同样的问题\
总会得到同样的答案。

## 为什么要用日志？

每个对话都是一条只追加的日志，其中的事件从一开始连续编号。订阅者只是一个游标：它记住自己\
读到了哪里，别的什么也不记。网络断开之后，客户端带着自己的位置回来，服务器就从下一个事件\
继续发送，一个字也不会丢，一个字也不会重复。

- **随时可以停止**：说了一半的话会留下来。
- **随时可以回来**：断线不等于取消。
- **多人同时观看**：大家看到的内容完全相同。

| 概念 | 含义 |
|:-----|:-----|
| 事件 | 日志中带编号的一帧 |
| 游标 | 对话、纪元与序号 |
| 回合 | 一条用户消息以及对它的全部回应 |

全角标点(，。！？)、中英文混排 like this、数字 12345 与生僻字𠮷也应当原样到达。
"""

EMOJI = """\
Families 👨‍👩‍👧‍👦 👩‍👩‍👦 👨‍👧, couples 👩🏽‍❤️‍💋‍👨🏻 🧑🏿‍🤝‍🧑🏼, \
people at work 👩🏾‍🚀 👨🏼‍🍳 🧑🏻‍💻 🤹🏿‍♀️. \
Flags 🇫🇷 🇯🇵 🇧🇷 🇺🇳 🏳️‍🌈 🏴‍☠️ 🏴󠁧󠁢󠁳󠁣󠁴󠁿. \
Skin tones 👍🏻 👍🏼 👍🏽 👍🏾 👍🏿, hearts ❤️ 🧡 ❤️‍🔥 ♥︎, keycaps 1️⃣ #️⃣ *️⃣. \
Letters with marks: é (one and two code points: e\u0301), ñ, ạ̈, Z̡͊͠͝, किं, ที่, 각, 안녕, שָׁלוֹם. \
Every one of these arrives whole, though it left in pieces. ✅
"""

THOUGHTS = """\
The user wants an answer, and would like to see how I get there. First, what is being \
asked? Second, what do I know about it: nothing, I am a demo model. Third, is there \
anything useful I can still say? Yes: that these lines are thoughts. They come on a \
channel of their own, they are never part of the answer, and the next model call does \
not get to read them.
"""

CONCLUSION = """\
I thought about that for a while, and you can read how. The short answer: **thoughts \
and answers are different things**. What I thought stays beside the conversation; only \
this text becomes part of it.
"""

REFUSAL = """\
I'm sorry, but I can't help with that. This is a demo of the channel on which a model \
refuses, so I would have said the same about the weather.
"""

FILTERED = """\
This answer begins well enough, but a content filter somewhere upstream does not like \
where it is going, and so it ends"""

LENGTH = """\
This answer is longer than it was allowed to be. It had much more to say, about logs \
and cursors and the order of things, but the limit on its tokens is reached in the \
middle of this very"""

BROKEN = """\
This is the beginning of an answer whose upstream will not see it through. So far all \
is well: words arrive, one after the other, and nothing hints at what is about to \
happen to them in the"""

CUT_OFF = """\
This answer is cut off by a broken connection, not only in the middle of a sentence \
but in the middle of a wo"""

STALLING = """\
This answer starts like any other. Then the upstream stops talking, without an error, \
without an end, with its connection open"""

NO_TOOLS = """\
I would call a tool now, but this conversation has none. Give me some, for example \
`get_time` and `get_weather`, and ask again.
"""

LOOKING_UP = "Let me look that up.\n\n"

UNAVAILABLE = "demo/failing is never available; that is what it is for"
FAILED_LATE = "demo/failing-late fails in the middle of every answer"
