"""What makes a check or a test come out differently on the same files, run by run."""

import os
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread


class Tosses:
    """What a flaky check reads, one line for each run, by what the file `who` holds: 1 lets it pass."""

    def __init__(self, place: Path, tosses: dict[str, str]) -> None:
        self.place, self._ended = place, Event()
        place.mkdir()
        self._threads = [Thread(target=self._serve, args=(place / who, rest)) for who, rest in tosses.items()]
        for who in tosses:
            os.mkfifo(place / who)
        for thread in self._threads:
            thread.start()

    @property
    def check(self) -> str:
        return f'read toss < "{self.place}/$(cat who)" && test "$toss" = 1'

    def _serve(self, path: Path, tosses: str) -> None:
        for toss in tosses + tosses[-1] * 100:
            writer = os.open(path, os.O_WRONLY)  # waits for a reader
            os.mkfifo(following := path.with_name(f"{path.name}.next"))
            following.rename(path)  # whoever reads next does not meet this reader's pipe, or its end
            if not self._ended.is_set():
                with suppress(BrokenPipeError):  # a reader whose time was up
                    os.write(writer, f"{toss}\n".encode())
            os.close(writer)
            if self._ended.is_set():
                return

    def close(self) -> None:
        self._ended.set()
        readers = [os.open(path, os.O_RDONLY | os.O_NONBLOCK) for path in self.place.iterdir()]
        for thread in self._threads:
            thread.join()
        for reader in readers:
            os.close(reader)
