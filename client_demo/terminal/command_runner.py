"""Does what the commands of a line say; `program` shows what comes of it."""

from client_demo.terminal import slash_commands
from client_demo.terminal.desk import Desk, DeskError
from client_demo.terminal.screen import LOG_IS_ANOTHER, Screen
from protocol.content import Config, Content


class CommandRunner:
    """Runs commands at one desk."""

    def __init__(self, desk: Desk, screen: Screen) -> None:
        """Takes what commands change, and where they show what is asked."""
        self._desk = desk
        self._screen = screen

    async def run(self, name: str, rest: str) -> Content | None:
        """Runs one command but `/quit`.

        Args:
            name: Of the command, with its slash.
            rest: What followed it.

        Returns:
            What is to be said to the model then; None for nothing.

        Raises:
            DeskError: It can't be done.
            ClientError: The server refused.
        """
        match name:
            case "/help" | "/models" | "/list" | "/where":
                self._tell(name)
            case "/model" | "/system":
                await self._setting(name, rest)
            case "/tools":
                await self._tools(rest)
            case "/retry":
                return await self._ask_again(None)
            case "/edit":
                if not rest:
                    raise DeskError("say what to ask in place of the last question")
                return await self._ask_again(rest)
            case "/drop":
                self._desk.drop()
            case _:
                await self._change_over(name, rest)
        return None

    def _tell(self, name: str) -> None:
        say = self._screen.say
        match name:
            case "/help":
                say("\n".join(slash_commands.help_lines()))
            case "/models":
                here = self._desk.model
                say(
                    "\n".join(
                        f"{'*' if m == here else ' '} {m}" for m in self._desk.models
                    )
                )
            case "/list":
                here = self._desk.chat.conversation
                for number, one in enumerate(self._desk.listing(), 1):
                    mark = "*" if one.conversation == here else " "
                    say(f"{mark} {number:3}  {one.conversation}  {one.title}")
            case _:
                cursor = self._desk.chat.cursor
                epoch = "?" if cursor is None else cursor.epoch
                state = "connected" if self._desk.connected else "no connection"
                say(
                    f"conversation {self._desk.chat.conversation} · epoch {epoch}"
                    f" · number {self._desk.chat.view.last} · {state}"
                )

    async def _setting(self, name: str, rest: str) -> None:
        config = self._desk.chat.view.config
        if rest:
            change = (
                Config(model=rest) if name == "/model" else Config(instructions=rest)
            )
            await self._desk.chat.configure(change)
            self._screen.say(f"from the next answer on: {rest}")
        elif name == "/model":
            self._screen.say(self._desk.model)
        else:
            self._screen.say(config.instructions or "nothing")

    async def _tools(self, rest: str) -> None:
        match rest.split():
            case []:
                for tool, state in self._desk.tools():
                    what = (tool.description or "").partition("\n")[0]
                    self._screen.say(f"{state:9}  {tool.name}  {what}")
            case ["on" | "off" as state, name]:
                await self._desk.switch_tool(name, on=state == "on")
                self._screen.say(f"{name} is {state} from the next answer on")
            case _:
                raise DeskError("say /tools, /tools on NAME or /tools off NAME")

    async def _delete(self, rest: str) -> None:
        if rest == "yes":
            await self._desk.delete()
        elif rest:
            raise DeskError("say /delete, which deletes the conversation that is open")
        else:
            name = self._desk.chat.conversation
            self._screen.warn(f"delete {name} for good? Then say /delete yes")

    async def _ask_again(self, other: str | None) -> Content:
        question = await self._desk.fork(1)
        assert question is not None, "one was left out"
        return question if other is None else other

    async def _change_over(self, name: str, rest: str) -> None:
        """Goes to another conversation."""
        match name:
            case "/new":
                await self._desk.open(model=rest or None)
            case "/switch":
                if not await self._desk.switch(rest):
                    self._screen.warn(LOG_IS_ANOTHER)
            case "/fork":
                if rest and not rest.isdecimal():
                    raise DeskError("say how many answers to leave out: /fork 1")
                await self._desk.fork(int(rest or 0))
            case "/delete":
                await self._delete(rest)
            case _:
                raise AssertionError(f"{name} is in the table of commands")
