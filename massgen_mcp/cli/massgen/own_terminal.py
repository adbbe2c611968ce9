"""The terminal of a command, which may be closed, or wanted back, before its run has ended: the run goes on without."""

import os
import signal
import subprocess

RESUMED_AFTER = "0.3"
"""Seconds that a shell gets to notice that its job has stopped."""


class OwnTerminal:
    """The standard streams that are a terminal, as long as somebody sits there."""

    def __init__(self) -> None:
        self._streams = [number for number in range(3) if os.isatty(number)]
        self.left = False
        """From then on nothing is read or shown there, and nobody can be asked."""

    def leave(self) -> None:
        """The terminal is gone: what is written to it is thrown away."""
        self.left = True
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in self._streams:
            os.dup2(nowhere, number)
        os.close(nowhere)

    def let_shell_go_on(self) -> None:
        """The shell that waits for this process sees a job that was stopped, takes its terminal back, and the job goes
        on in the background. Where no shell waits, nothing is lost.
        """
        wake = f"sleep {RESUMED_AFTER}; kill -CONT {os.getpid()}"
        subprocess.Popen(["/bin/sh", "-c", wake], start_new_session=True, env={})  # noqa: S603 - our own number alone
        os.kill(os.getpid(), signal.SIGSTOP)

    def outlive(self) -> None:
        """Whatever the terminal still sends is of no effect."""
        if self.left:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
