#!/bin/sh
# Copies the state directory $1 to the new directory $2, also while runs go on. docs/serving.md says how to restore it.
set -eu
umask 077
: "${2:?the state directory and a new one are needed}"
if [ ! -f "$1/runs.sqlite3" ]; then
    echo "backup.sh: there is no runs.sqlite3 in $1, so nothing was copied" >&2
    exit 1
fi
mkdir -p "$2"
# The store first: a run that begins after that is missing in the copy. The other way round its files would be.
python3 - "$1/runs.sqlite3" "$2/runs.sqlite3" <<'END_OF_PROGRAM'
import sqlite3, sys

sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True).execute("VACUUM INTO ?", sys.argv[2:])
END_OF_PROGRAM
for part in fingerprint.secret http-token.secret runs trust; do
    if [ -e "$1/$part" ]; then cp -a "$1/$part" "$2/"; fi
done
