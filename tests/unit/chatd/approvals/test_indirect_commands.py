"""A denied program is refused or asked about, whatever shell text, variable or wrapper runs it."""

import json

import pytest

from chatd.approvals.domain.judgement import Allow, Ask, Deny, Judgement, judge
from chatd.approvals.domain.rules import INSTALLATION, Effect, Rule
from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolCall
from chatd.content.domain.tools import Executor, ToolSpec

EXECUTE = ToolSpec("execute", "", "{}", Executor.TOOLRUNNER)
NO_TOUCH = Rule("no-touch", INSTALLATION, Effect.DENY, command="touch *")


def judged(command: str, *rules: Rule, env: dict[str, str] | None = None) -> Judgement:
    arguments = json.dumps({"command": command, "env": env or {}})
    made = ToolCall("call", "execute", arguments)
    return judge(made, EXECUTE, ChatMode.ORDINARY, rules or (NO_TOUCH,))


DENIED = [
    # Options of shells.
    "bash -O extglob -c 'touch F'",
    "bash +O extglob -c 'touch F'",
    "bash -cO extglob 'touch F'",
    "bash -eO extglob -uo pipefail -c -- 'touch F'",
    "rbash -c 'touch F'",
    "busybox sh -c 'touch F'",
    "busybox ash -c 'touch F'",
    # Words before the program that are no part of it.
    "env 1a=b touch F",
    "env a.b=c touch F",
    "time A=1 touch F",
    "find . -exec env -u + touch F \\;",
    # Texts that programs run as commands.
    "GIT_EDITOR='touch F' git commit",
    "env PAGER='touch F' git log",
    "export EDITOR='touch F'; git commit",
    "PROMPT_COMMAND='touch F' bash -c :",
    "git -c alias.x='!touch F' x",
    "git -c core.pager='touch F' log",
    "git -c core.sshCommand='touch F' fetch",
    "trap 'touch F' EXIT",
    "eval 'touch F'",
]

ASKED = [
    # Options of shells that are not known exactly, and shells that read their input.
    "bash +c 'touch F'",
    "bash -oc pipefail 'touch F'",
    "bash -kc 'touch F'",
    "bash -ic 'touch F'",
    "sh -O extglob -c 'touch F'",
    "bash - -c 'touch F'",
    "bash --rcfile x -c 'touch F'",
    "echo touch F | bash /dev/stdin",
    "echo touch F | sh /proc/self/fd/0",
    "cd /dev && echo touch F | sh stdin",
    # Input of xargs.
    "echo x | xargs --replace touch F",
    "echo x | xargs --replace=R touch F",
    "echo x | xargs -i touch F",
    "echo x | xargs -l touch F",
    "echo x | xargs -e touch F",
    "echo x | xargs --eof touch F",
    "echo x | xargs --max-lines touch F",
    "printf 'touch F' | xargs -I{} sh -c '{}'",
    "echo touch F | xargs -I% sh -c %",
    "echo touch F | xargs -I % sh -c %",
    "echo touch | xargs -I% sh -c '% F'",
    "echo touch | xargs -I% env % F",
    "echo touch | xargs -I% % F",
    "X=5; echo touch | xargs -I $X sh -c 5",
    # Variables that shells expand, and by which programs load or run something.
    "BASH_ENV='$(touch F)' bash -c :",
    "env BASH_ENV='$(touch F)' bash -c :",
    "export BASH_ENV='$(touch F)'; bash -c :",
    "declare -x BASH_ENV='$(touch F)'; bash -c :",
    "read BASH_ENV < f; export BASH_ENV; bash -c :",
    "printf -v PS4 %s x; set -x; :",
    "for PS4 in '$(touch F)'; do set -x; :; done",
    "ENV='$(touch F)' sh -ic :",
    "ENV='$(touch F)' dash -i -c :",
    "PS4='$(touch F)' bash -xc :",
    "bash -c \"PS4='\\$(touch F)'; set -x; :\"",
    "bash -xc \"PS4='\\$(touch F)'; x=1\"",
    "PS4='\\044(touch F)'; set -x; :",
    "PS0=x bash -c :",
    "PROMPT_COMMAND=$X bash -c :",
    "LD_PRELOAD=./x.so ls",
    "LD_AUDIT=./x.so ls",
    "LD_LIBRARY_PATH=. ls",
    "env 'BASH_FUNC_ls%%=() { touch F; }' bash -c ls",
    "GIT_SSH_COMMAND=$X git pull",
    "GIT_PAGER=$X git log",
    "GIT_EXTERNAL_DIFF=$X git diff",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!touch F' git x",
    "PYTHONSTARTUP=x python -i",
    "PERL5OPT=-Mx perl y",
    "set -k; bash -c : BASH_ENV=f",
    # Commands of bash that evaluate their arguments.
    "test -v 'a[$(touch F)]'",
    "[ -v 'a[$(touch F)]' ]",
    "[ -v 'a[`touch F`]' ]",
    '[ -v "$X" ]',
    "A=-v; [ $A $B ]",
    "[[ -v 'a[$(touch F)]' ]]",
    "time [[ -v 'a[$(touch F)]' ]]",
    "printf -v 'a[$(touch F)]' x",
    "printf '-va[$(touch F)]' x",
    'printf -v "$X" x',
    "builtin printf -v 'a[$(touch F)]' x",
    "unset 'a[$(touch F)]'",
    'unset "$X"',
    "read 'a[$(touch F)]'",
    'read "$X"',
    "declare 'a[$(touch F)]=1'",
    "declare -i x='a[$(touch F)]'",
    "declare -a x='($(touch F))'",
    "typeset -i x=$X",
    "local 'a[$(touch F)]=1'",
    'export "$X"',
    "readonly 'a[$(touch F)]=1'",
    "let 'a[$(touch F)]'",
    "getopts a 'a[$(touch F)]'",
    "mapfile -C 'touch F' -c 1",
    "readarray -C 'touch F' -c 1",
    "complete -C 'touch F' x",
    "compgen -C 'touch F' x",
    "coproc touch F",
    "time coproc touch F",
    "time ! touch F",
    "alias x='touch F'",
    "hash -p /usr/bin/touch x; x F",
    "enable -f ./x.so x",
    "bind -x '\"a\": touch F'",
    "wait -p 'a[$(touch F)]'",
    "source f",
    "x='a[$(touch F)]' bash -c 'echo $((x))'",
    "f() { echo $((z)); }; y='$(touch F)]'; z='a['$y; f",
    "z=$(printf '\\141\\133\\044(touch F)]'); echo $((z))",
    "read z; echo $((z))",
    "set -- 'a[$(touch F)]'; echo $(($1))",
    # Other shells.
    *(
        f"{shell} -c 'touch F'"
        for shell in (
            *("ksh", "ksh93", "mksh", "zsh", "zsh-5.9", "fish", "csh", "tcsh", "yash", "posh"),
            *("busybox hush", "bash-5.2", "some-shell"),
        )
    ),
    # Wrappers, known by their names or not.
    "taskset 1 touch F",
    "chrt -o 0 touch F",
    "setarch x86_64 touch F",
    "linux32 touch F",
    "linux64 touch F",
    "i386 touch F",
    "prlimit --nofile=5 touch F",
    "setpriv --no-new-privs touch F",
    "fakeroot touch F",
    "capsh -- -c 'touch F'",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/touch F",
    "ld.so /usr/bin/touch F",
    "/lib/ld-musl-x86_64.so.1 $X F",
    "nice --5 touch F",
    "ionice -p 1 touch F",
    "stdbuf --x touch F",
    "timeout --verbose 5 touch F",
    "nice -n $X F",
    "timeout -- $X touch F",
    "unshare -r touch F",
    "nsenter -a touch F",
    "chroot / touch F",
    "runuser -u x touch F",
    "su -c 'touch F'",
    "sudo -s touch F",
    "doas -s",
    "script -c 'touch F'",
    "flock f touch F",
    "watch touch F",
    "parallel touch ::: F",
    "strace touch F",
    "ltrace touch F",
    "gdb --args touch F",
    "valgrind touch F",
    "firejail touch F",
    "bwrap --bind / / touch F",
    "systemd-run touch F",
    "cgexec -g x touch F",
    "numactl -N 0 touch F",
    "catchsegv touch F",
    "proot touch F",
    "dbus-run-session touch F",
    "xvfb-run touch F",
    "start-stop-daemon -S -x /usr/bin/touch F",
    "run-parts d",
    "at now",
    "batch",
    "crontab f",
    "make CC=touch",
    "make --eval='x:;touch F'",
    "some-wrapper 1 touch F",
    "some-wrapper -- /usr/bin/touch F",
    "some-wrapper --run='touch F'",
    "some-wrapper -e'sh -c \"touch F\"'",
    "some-wrapper 'taskset 1 touch F'",
    "some-wrapper '[[ x ]] && touch F'",
    "./ls touch F",
    "npx touch F",
    "CC=touch make",
    "export CC=touch; make",
    'set -- touch F; some-wrapper "$@"',
    "sh -c 'some-wrapper \"$@\"' _ touch F",
    'f() { some-wrapper "$@"; }; f touch F',
    "git config alias.x '!touch F'; git x",
    "exec {a['$(touch F)']}>f",
    "find . -exe? touch F \\;",
    "env -- - touch F",
    "timeout 5 -- touch F",
    "uv run touch F",
    # Programs that run a command that one of their options names.
    "git -c alias.x=push x",
    "git -c core.hooksPath=h commit",
    "git --config-env=core.pager=X log",
    "git --exec-path=d x",
    "git --attr-source HEAD x",
    "git bisect run touch F",
    "git submodule foreach 'touch F'",
    "git rebase -x 'touch F' main",
    "git rebase --exec=touch main",
    "tar -cf x --checkpoint-action=exec='touch F' y",
    "tar -xf x --to-command='touch F'",
    "tar -I 'touch F' -cf x y",
    "tar -Itouch -cf x y",
    "tar --use-compress-program touch -cf x y",
    "rsync -e 'touch F' a b",
    "sort --compress-program=touch x",
    "rg --pre touch x",
]

ALLOWED = [
    "ls touch",
    "echo 'touch F'",
    "grep -rn touch .",
    "find . -name touch",
    "git commit -m 'touch up'",
    "git rm touch",
    "git -c user.name=x -c core.pager=cat log",
    "git --no-pager -C a -c core.pager= log",
    "PAGER=cat GIT_EDITOR=true git log",
    "ENV=production GIT_CONFIG_GLOBAL=/dev/null npm test",
    'export PATH="$PATH:/x" A=$(pwd); make -j4 all',
    "set -euo pipefail; make",
    "bash -lc 'make x'",
    "bash -euo pipefail -c 'make x'",
    "sh x.sh",
    'read -rn1 -p "$x" line; [ -n "$line" ] && [ "$line" = "$x" ]',
    "for i in 1 2; do n=$((n+i)); done; unset n; wait $!",
    "ls | xargs -I{} cp {} x",
    "python -c 'import os' touching",
    "CC=gcc make V=1 'CFLAGS=-O2 -g'",
    "find *.py -name x",
    "curl -d '{\"a\": [[1]]}' x",
    "sed -i s/touch/x/ f",
    "tar -I zstd -xf x",
    "printf '[%s] `x`' y",
]


@pytest.mark.parametrize("command", DENIED)
def test_a_denied_program_is_refused_where_it_is_read(command: str) -> None:
    assert isinstance(judged(command), Deny)


@pytest.mark.parametrize("command", ASKED)
def test_a_denied_program_is_asked_about_where_it_may_run(command: str) -> None:
    assert isinstance(judged(command), Ask)


@pytest.mark.parametrize("command", ALLOWED)
def test_a_command_that_names_no_denied_program_to_run_is_not_asked_about(command: str) -> None:
    assert isinstance(judged(command), Allow)


@pytest.mark.parametrize("command", [*DENIED, *ASKED])
def test_nothing_is_asked_about_without_a_rule_that_denies_or_asks(command: str) -> None:
    allows = Rule("git", INSTALLATION, Effect.ALLOW, command="git *")
    assert isinstance(judged(command, allows), Allow)


def test_variables_of_the_call_are_read_as_those_of_the_command() -> None:
    assert isinstance(judged("bash -c :", env={"BASH_ENV": "$(touch F)"}), Ask)
    assert isinstance(judged("echo $((x))", env={"x": "a[$(touch F)]"}), Ask)
    assert isinstance(judged("git log", env={"GIT_PAGER": "touch F"}), Deny)
    assert isinstance(judged("git log", env={"GIT_PAGER": "cat"}), Allow)


def test_a_program_of_several_words_is_found_among_arguments_by_all_of_them() -> None:
    no_push = Rule("no-push", INSTALLATION, Effect.ASK, command="git push *")
    assert isinstance(judged("npx git push", no_push), Ask)
    assert isinstance(judged("npx git $X", no_push), Ask)
    assert isinstance(judged("apt-get install git", no_push), Allow)


def test_a_rule_that_allows_a_program_does_not_allow_what_its_arguments_name() -> None:
    allows = Rule("npx", INSTALLATION, Effect.ALLOW, command="npx --package *")
    assert isinstance(judged("npx --package x touch F", NO_TOUCH, allows), Ask)
    assert isinstance(judged("npx --package x tsc", NO_TOUCH, allows), Allow)


def test_a_file_of_the_workspace_is_no_wrapper_that_needs_no_rule() -> None:
    asks = Rule("asks", INSTALLATION, Effect.ASK, tool="execute")
    allows = Rule("git", INSTALLATION, Effect.ALLOW, command="git *")
    assert isinstance(judged("nice git log", asks, allows), Allow)
    assert isinstance(judged("./nice git log", asks, allows), Ask)
    assert isinstance(judged("./sh -c 'git log'", asks, allows), Ask)


def test_the_question_says_what_an_unknown_program_may_run() -> None:
    assert judged("some-wrapper touch F") == Ask(
        "a rule of the installation asks before some-wrapper touch F, which may run touch *",
        "no-touch",
        is_rememberable=False,
    )
