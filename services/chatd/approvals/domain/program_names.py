"""Names of programs by what they do with their arguments."""

import re
from typing import Final

#: Shells whose options and texts are read; others are in `OPAQUE`.
SHELLS: Final = frozenset(("sh", "ash", "bash", "dash", "rbash"))
_OTHER_SHELLS: Final = (
    *("bosh", "csh", "elvish", "es", "fish", "hush", "ion", "ksh", "lash", "lksh", "loksh"),
    *("mksh", "msh", "nu", "oksh", "osh", "pdksh", "posh", "pwsh", "rksh", "rzsh", "scsh"),
    *("tcsh", "xonsh", "yash", "ysh", "zsh"),
)
#: Reserved words, which a shell also reads behind `time`.
_RESERVED: Final = frozenset(
    ("!", "[[", "case", "coproc", "for", "function", "if", "select", "until", "while", "{")
)
_BUILTINS: Final = (
    *(".", "alias", "bind", "compgen", "complete", "enable", "fc", "let", "mapfile", "readarray"),
    "source",
)
_WRAPPERS: Final = (
    *("aa-exec", "at", "batch", "bwrap", "capsh", "catchsegv", "cgexec", "chpst", "chroot"),
    *("chrt", "crontab", "cttyhack", "daemonize", "dbus-launch", "dbus-run-session", "docker"),
    *("doexec", "entr", "envdir", "envuidgid", "eatmydata", "expect", "fakechroot", "fakeroot"),
    *("faketime", "firejail", "flatpak-spawn", "flock", "gdb", "gdbserver", "gosu", "gtimeout"),
    *("hyperfine", "i386", "inotifyd", "linux32", "linux64", "ltrace"),
    *("minijail0", "mosh", "newgrp", "nerdctl", "nsenter", "nsjail", "numactl"),
    *("openvt", "parallel", "pdsh", "pkexec", "podman", "prlimit", "proot", "proxychains"),
    *("proxychains4", "rr", "rsh", "run-parts", "run0", "runcon", "runuser", "rush", "schroot"),
    *("screen", "script", "setarch", "setpriv", "setuidgid", "sg", "socat", "softlimit", "ssh"),
    *("sshpass", "start-stop-daemon", "strace", "su", "su-exec", "systemd-run", "taskset"),
    *("tcpsvd", "tini", "tmux", "torsocks", "torify", "trickle", "tsocks", "udpsvd", "unbuffer"),
    *("uname26", "unshare", "valgrind", "watch", "watchexec", "x86_64"),
    "xvfb-run",
)
#: They run what cannot be read from the call.
OPAQUE: Final = frozenset((*_OTHER_SHELLS, *_RESERVED, *_BUILTINS, *_WRAPPERS))
#: They run none of their arguments, so the name of a program among them does not matter.
PLAIN: Final = frozenset(
    (
        *(":", "[", "b2sum", "base32", "base64", "basename", "bg", "break", "cat", "cd", "chgrp"),
        *("chmod", "chown", "cksum", "clear", "cmp", "comm", "continue", "cp", "csplit", "cut"),
        *("date", "dd", "declare", "df", "diff", "dir", "dirname", "du", "echo", "egrep", "exit"),
        *("expand", "export", "expr", "factor", "false", "fg", "fgrep", "file", "fmt", "fold"),
        *("free", "getopts", "grep", "groups", "hash", "head", "hostname", "id", "jobs", "join"),
        *("jq", "kill", "killall", "link", "ln", "local", "ls", "md5sum", "mkdir", "mkfifo"),
        *("mktemp", "mv", "nl", "nproc", "od", "paste", "pgrep", "pkill", "popd", "pr"),
        *("printenv", "printf", "ps", "pushd", "pwd", "read", "readlink", "readonly", "realpath"),
        *("return", "rm", "rmdir", "seq", "set", "sha1sum", "sha224sum", "sha256sum"),
        *("sha384sum", "sha512sum", "shift", "shuf", "sleep", "stat", "strings", "sum", "sync"),
        *("tac", "tail", "tee", "test", "touch", "tr", "true", "truncate", "tsort", "tty"),
        *("type", "typeset", "ulimit", "umask", "unalias", "uname", "unexpand", "uniq", "unlink"),
        *("unset", "uptime", "wait", "wc", "whereis", "which", "whoami", "xxd", "yes"),
    )
)
#: Subcommands of `git` of which that is true too.
PLAIN_GIT: Final = frozenset(
    (
        *("add", "apply", "blame", "branch", "checkout", "cherry-pick", "clean", "commit"),
        *("describe", "diff", "init", "log", "ls-files", "merge", "mv", "notes", "remote"),
        *("reset", "restore", "rev-parse", "revert", "rm", "show", "stash", "status", "switch"),
        *("tag", "worktree"),
    )
)
#: The loader of programs, which runs the one that its arguments name.
_LOADER: Final = re.compile(r"ld\.so.*|ld-.*\.so.*|ld(?:32|64)?\.so.*|ld-musl.*")
_VERSION: Final = re.compile(r"(?<=[a-z])[-.]?[0-9][-.0-9]*$")


def may_run_anything(name: str) -> bool:
    """Return whether a program of that name runs what cannot be read from the call."""
    unversioned = _VERSION.sub("", name)
    return (
        name in OPAQUE
        or unversioned in OPAQUE
        or (name != unversioned and unversioned in SHELLS)
        or _LOADER.fullmatch(name) is not None
    )
