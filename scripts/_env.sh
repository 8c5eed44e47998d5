# What is needed to run anything here: a .venv in the repository root with this project and its extras in it.
# Sourced by scripts/run and scripts/test:
#     ensure_env            the base packages
#     ensure_env dev,atari  with extras
# Afterwards $root is the repository and $python the interpreter in .venv. Set PYTHON to choose the Python it is made with.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$root/.venv
python=$venv/bin/python
# The stamp says what a finished install holds: first line its fingerprint, second line its extras.
stamp=$venv/filtergym-installed
# This mark stands while an install is under way; one found later tells of an install that did not finish.
unfinished=$venv/filtergym-installing

# What the installed packages depend on. The path is part of it, because a moved .venv still imports from the old place.
fingerprint() {
    { cat "$root/pyproject.toml" "$root/constraints.txt" && printf '%s' "$root"; } | cksum
}

stamped_extras() {
    [ -f "$stamp" ] && [ "$(sed -n 1p "$stamp")" = "$(fingerprint)" ] && sed -n 2p "$stamp"
}

venv_works() {
    [ -x "$python" ] && "$python" -c 'import pip' 2>/dev/null
}

# Whether .venv holds the packages of the extras in $1, in full and up to date.
is_installed() {
    local extras extra
    [ ! -e "$unfinished" ] && extras=$(stamped_extras) && venv_works || return 1
    for extra in ${1//,/ }; do
        case ",$extras," in *",$extra,"*) ;; *) return 1 ;; esac
    done
}

# A Python that is new enough and can make environments (Debian splits that part off into python3-venv).
suitable() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local candidate
    if [ -n "${PYTHON:-}" ]; then
        suitable "$PYTHON" && printf '%s' "$PYTHON" && return
        echo "PYTHON=$PYTHON is no Python 3.11 or newer with the venv module: correct or unset it." >&2
        return 2
    fi
    for candidate in python3.11 python3.12 python3.13 python3 python; do
        suitable "$candidate" && printf '%s' "$candidate" && return
    done
    echo "FilterGym needs Python 3.11 or newer with the venv module: install one, or set PYTHON to its path." >&2
    return 2
}

make_venv() {
    local base
    base=$(find_python) || exit 2
    rm -rf "$venv"
    mkdir "$venv"
    touch "$unfinished"
    "$base" -m venv "$venv"
}

# Installs the extras in $1 together with those that .venv has already, so that two scripts never undo each other's work.
install() {
    local extras=$1 present
    if [ -e "$unfinished" ] || ! venv_works; then
        [ ! -e "$venv" ] || echo "Making .venv anew: it is broken, or its last install did not finish." >&2
        make_venv
    fi
    present=$(stamped_extras) || present=
    extras=$(printf '%s' "$present,$extras" | tr ',' '\n' | sed '/^$/d' | sort -u | paste -sd, -)
    echo "Installing FilterGym${extras:+ [$extras]} into .venv (a minute or more the first time) ..." >&2
    touch "$unfinished"
    rm -f "$stamp"
    if ! (cd "$root" && "$python" -m pip install --quiet --no-input --disable-pip-version-check \
        --constraint constraints.txt --editable ".${extras:+[$extras]}"); then
        echo "The installation failed for the reason above; the next start tries again." >&2
        exit 1
    fi
    printf '%s\n' "$(fingerprint)" "$extras" >"$stamp"
    rm -f "$unfinished"
}

ensure_env() {
    is_installed "${1:-}" && return
    # One install at a time: a second start waits, then finds the work done. (macOS has no flock.)
    if command -v flock >/dev/null; then
        exec 9>"$root/.venv.lock"
        if ! flock -n 9; then
            echo "Waiting for another start that is installing into .venv ..." >&2
            flock 9 || true # some cluster file systems have no locks
        fi
    fi
    is_installed "${1:-}" || install "${1:-}"
    exec 9>&-
}
