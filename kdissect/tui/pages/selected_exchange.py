"""Pages with an exchange under a cursor, and the actions on it."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from shlex import join
from shutil import which
from typing import NamedTuple

import numpy as np
from textual import work
from textual.worker import get_current_worker

from kdissect.exchange import Exchange
from kdissect.feed.index import Places
from kdissect.feed.saving import (
    FORMS,
    AlreadyExistsError,
    CannotSaveError,
    MayHaveSecretsError,
    is_packets,
    save,
    why_no_name,
)
from kdissect.filter.errors import FilterError
from kdissect.present.compared import compared
from kdissect.present.detail import Detail, TreeSpot
from kdissect.present.form import plural
from kdissect.present.sanitise import sanitise
from kdissect.present.secret_names import REDACTED
from kdissect.settings.commands import WrongTemplateError, filled_in
from kdissect.settings.remembered import asks_for_a_secret
from kdissect.tui.colors import alarm_color
from kdissect.tui.copying import FORMS as COPY_FORMS
from kdissect.tui.copying import OF_FILTER, copied, copied_message, why_not_copied, wireshark_command
from kdissect.tui.pages.page import Page
from kdissect.tui.widgets.dialogs import Ask, Choose, ComparedExchanges

_OWN = "command "
"""The text before the name of a command of the user."""


class _SavedExchanges(NamedTuple):
    """The exchanges to save."""

    title: str
    view: Places


class ChosenPage(Page):
    """A page with an exchange under its cursor."""

    def __init__(self) -> None:
        super().__init__()
        self._only_marked: str | None = None
        """The filter that last showed the marked exchanges."""

    def chosen_line(self) -> tuple[Detail, list[TreeSpot]] | None:
        """The exchange in the tree, and the line under the cursor after the lines around it."""
        raise NotImplementedError

    def listed(self) -> Places:
        """The exchanges of the list, in its order."""
        raise NotImplementedError

    @property
    def chosen_number(self) -> int | None:
        """The number of the exchange under the cursor."""
        place = self.chosen_place()
        return None if place is None else self.kdissect.index.value("number", place)

    def chosen_exchange(self) -> Exchange | None:
        """The exchange under the cursor, read from the spool."""
        app, place = self.kdissect, self.chosen_place()
        if place is None:
            return None
        try:
            return app.feed.exchange(app.index.value("place", place), app.index.value("length", place))
        except OSError as error:
            self.show_message(f"the exchange cannot be read: {error.strerror or error}")
            return None

    # -- marks and comments -------------------------------------------------------------------------

    def action_mark(self) -> None:
        number = self.chosen_number
        if number is not None:
            marks = self.kdissect.marks
            what = "marked" if marks.toggle(number) else "no longer marked"
            self.marks_changed()
            self.show_message(f"No. {number} is {what}; {len(marks.numbers):,} marked")

    def action_mark_shown(self) -> None:
        """Mark the exchanges of the list, or remove their marks if all have one."""
        numbers = self.kdissect.index.column("number")[self.listed()].tolist()
        if not numbers:
            self.show_message("there is nothing to mark")
            return
        marks = self.kdissect.marks
        what = "marked" if marks.toggle_all(numbers) else "no longer marked"
        self.marks_changed()
        are = "is" if len(numbers) == 1 else "are"
        self.show_message(f"{plural(len(numbers), 'exchange')} {are} {what}; {len(marks.numbers):,} marked")

    def action_differences(self) -> None:
        """Show the differences of two exchanges: the marked ones, or the marked one and that under the
        cursor."""
        numbers = sorted({*self.kdissect.marks.numbers})
        marked = len(numbers)
        if len(numbers) == 1 and self.chosen_number is not None:
            numbers = [*numbers, self.chosen_number]
        if len(numbers) != 2 or numbers[0] == numbers[1]:
            self.show_message(f"mark two exchanges with m, or one and go to the other; {marked:,} marked")
            return
        places = [self.kdissect.place_of(number) for number in numbers]
        first, second = (None if place is None else self.kdissect.exchange_at(place) for place in places)
        if first is not None and second is not None:
            title = f"- only in No. {numbers[0]}   + only in No. {numbers[1]}"
            self._compare(title, first, second)

    @work(thread=True, exclusive=True, group="compare")
    def _compare(self, title: str, first: Exchange, second: Exchange) -> None:
        """Compare in a thread: large exchanges take longer than a frame may."""
        lines = tuple(compared(first, second, self.kdissect.options))
        dialog = ComparedExchanges(title, lines, alarm_color(self.app))
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self.app.push_screen, dialog)

    def action_only_marked(self) -> None:
        wanted, shown = self.kdissect.marks.filter(), self.kdissect.shown
        if self._only_marked is not None and shown.is_on and shown.text == self._only_marked:
            shown.pop()
            self.show_message("all that was shown before")
        elif wanted:
            try:
                self.kdissect.filter_by(wanted)
            except FilterError:  # too long
                self.show_message("there are too many marks for a filter; w saves the marked exchanges")
            else:
                self._only_marked = shown.text
        else:
            self.show_message("nothing is marked")

    def action_next_mark(self) -> None:
        number = self.chosen_number
        wanted = None if number is None else self.kdissect.marks.next(number)
        if wanted is None:
            self.show_message("nothing is marked and nothing has a comment")
        else:
            self.kdissect.go_to_number(wanted)
            said = self.kdissect.marks.comment(wanted)
            self.show_message(f"No. {wanted}" + (f": {said}" if said else ""))

    def action_comment(self) -> None:
        number = self.chosen_number
        if number is None:
            return
        marks = self.kdissect.marks

        def given(text: str | None) -> None:
            if text is not None:
                marks.set_comment(number, text)
                self.marks_changed()
                self.show_message(
                    f"No. {number}: {text}" if text else f"No. {number} has no comment of yours"
                )

        title = f"Comment on No. {number}"
        self.app.push_screen(Ask(title, "kept in pcapng", marks.own(number) or "", may_be_empty=True), given)

    # -- copying ------------------------------------------------------------------------------------

    def action_copy(self) -> None:
        if self.chosen_line() is None:
            self.show_message("there is nothing to copy")
        else:
            own = [f"{_OWN}{sanitise(name)}" for name in self.kdissect.settings.commands]
            self.app.push_screen(Choose("Copy", (*COPY_FORMS, *own)), self._copy)

    def _copy(self, form: str | None) -> None:
        chosen = self.chosen_line()
        if form is None or chosen is None:
            return
        if form.startswith(_OWN):
            self._copy_own(form, chosen[0].exchange)
            return
        source, filter, options = self.kdissect.feed.source, self.kdissect.shown.chosen, self.kdissect.options
        paths = () if source.is_live else source.paths
        hides = filter is not None and not options.show_secrets and asks_for_a_secret(filter)
        shown = REDACTED if hides else "" if filter is None else filter.text
        key_logs = self.kdissect.key_logs_of(chosen[0].exchange)
        text = copied(form, *chosen, options, paths, shown, key_logs)
        if text is None:
            self.show_message(why_not_copied(form, chosen[0], options, paths))
            return
        self.app.copy_to_clipboard(text)
        if hides and form == OF_FILTER:
            self.show_message(f"copied the {form} with {REDACTED}, because the filter asks for a secret")
        else:
            self.show_message(copied_message(form, text))

    def _copy_own(self, form: str, exchange: Exchange) -> None:
        """Copy a command of the user."""
        commands = self.kdissect.settings.commands.items()
        template = next(text for name, text in commands if f"{_OWN}{sanitise(name)}" == form)
        try:
            text = filled_in(template, exchange)
        except WrongTemplateError as error:
            self.show_message(str(error))
        else:
            self.app.copy_to_clipboard(text)
            self.show_message(copied_message("command", text))

    # -- saving -------------------------------------------------------------------------------------

    def action_save(self) -> None:
        app, place = self.kdissect, self.chosen_place()
        if place is None:
            self.show_message("there is nothing to save")
            return
        shown = self.listed().copy()
        choices = [_SavedExchanges(f"shown: {plural(len(shown), 'exchange')}", shown)]
        if app.marks.numbers:
            numbers = np.fromiter(app.marks.numbers, np.int64)
            marked = app.index.order()[np.isin(app.index.column("number")[app.index.order()], numbers)]
            choices.append(_SavedExchanges(f"marked: {plural(len(marked), 'exchange')}", marked))
        choices.append(_SavedExchanges(f"this one: No. {self.chosen_number}", np.array([place], np.uint32)))
        by_title = {choice.title: choice for choice in choices}

        def chosen(title: str | None) -> None:
            if title is not None:
                self._ask_path(by_title[title])

        app.push_screen(Choose("Save", list(by_title)), chosen)

    def _ask_path(self, what: _SavedExchanges) -> None:
        def given(path: str | None) -> None:
            if path is not None:
                self.show_message(f"saving {path} …")
                self._save(os.path.expanduser(path), what)

        hint = f"name{', name'.join(FORMS)}"
        note = "pcapng: packets as captured, passwords and tokens included"
        why_not = partial(why_no_name, forms=FORMS)
        self.app.push_screen(Ask(f"Save {what.title}", hint, note=note, why_not=why_not), given)

    @work(thread=True, group="save")
    def _save(
        self, path: str, what: _SavedExchanges, replace: bool = False, with_secrets: bool | None = None
    ) -> None:
        app = self.kdissect
        comments = dict(app.marks.comments)
        numbers = app.index.column("number")[what.view].tolist()
        try:
            said = save(
                *(path, app.feed, app.index, what.view, app.options, comments),
                replace=replace,
                with_secrets=with_secrets,
            )
        except AlreadyExistsError:
            app.call_from_thread(self._ask_to_replace, path, what)
            return
        except MayHaveSecretsError:
            app.call_from_thread(self._ask_for_secrets, path, what, replace)
            return
        except CannotSaveError as error:
            said = str(error)
        else:
            if is_packets(path):
                app.call_from_thread(app.note_saved, comments, numbers)
        app.call_from_thread(self.show_message, said)

    def _ask_to_replace(self, path: str, what: _SavedExchanges) -> None:
        keep, replace = "keep it", "replace it"
        title = f"{sanitise(os.path.basename(path), 40)} is there already"

        def chosen(word: str | None) -> None:
            if word == replace:
                self._save(path, what, replace=True)
            else:
                self.show_message(f"{path} was not changed")

        self.app.push_screen(Choose(title, (keep, replace)), chosen)

    def _ask_for_secrets(self, path: str, what: _SavedExchanges, replace: bool) -> None:
        leave, write = "leave them out", "write them too: anybody with the file can decrypt it"

        def chosen(word: str | None) -> None:
            if word is None:
                self.show_message("nothing was saved")
            else:
                self._save(path, what, replace, with_secrets=word == write)

        self.app.push_screen(Choose("The TLS secrets of these connections", (leave, write)), chosen)

    # -- Wireshark ----------------------------------------------------------------------------------

    def action_wireshark(self) -> None:
        exchange, paths = self.chosen_exchange(), self.kdissect.feed.source.paths
        if exchange is None:
            return
        if len(paths) != 1 or not os.path.isfile(paths[0]):  # an interface, a folder
            self.show_message("Wireshark can open only one file; save the exchange (w) and open that file")
            return
        command = wireshark_command(exchange, paths, self.kdissect.key_logs_of(exchange))
        if which(command[0]) is None or not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            why = "not installed" if which(command[0]) is None else "no display"
            self.app.copy_to_clipboard(join(command))
            self.show_message(f"{why} here; copied: {join(command)}")
            return
        try:
            self._start(command)
        except OSError as error:
            self.show_message(f"Wireshark cannot be started: {error.strerror or error}")
        else:
            self.show_message(f"Wireshark opens at packet {command[-1]}")

    def _start(self, command: list[str]) -> None:
        """Start a program that runs independently and prints nothing here."""
        nowhere = partial(subprocess.Popen, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        nowhere(command, stderr=subprocess.DEVNULL, start_new_session=True)
