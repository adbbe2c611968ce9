#!/usr/bin/env bash
# Operate a run that an MCP client has started: wait for it, take its answer, or stop it when it takes too long.
#
#   examples/background_run.sh run-7f3a 600
massgen wait "$1" --timeout "$2"
case $? in
    0) massgen result "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["answer"])' ;;
    2) massgen cancel "$1" ;;
    4) massgen status "$1" && echo "Tell it with: massgen answer $1 TEXT" ;;
    *) exit 1 ;;
esac
