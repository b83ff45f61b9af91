"""Every command of a shell text is found, or the text is unreadable."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatd.approvals.domain.programs import programs_of
from chatd.approvals.domain.shell import simple_commands
from chatd.approvals.domain.shell_words import Unreadable

READ = [
    ("git status", ["git status"]),
    ("  ls   -l  # all", ["ls -l"]),
    ("a && b || c; d & e", ["a", "b", "c", "d", "e"]),
    ("a | b |& c", ["a", "b", "c"]),
    ("a\nb\n\n# c\nd", ["a", "b", "d"]),
    ("echo a\\\n b", ["echo a b"]),
    ("\\rm 'a b'\"c\"", ["rm a bc"]),
    ('echo $(rm a) `rm b` "$(rm c)" "`rm d`"', ["rm a", "rm b", "rm c", "rm d", "echo … … … …"]),
    ("echo $(a $(b $(c)))", ["c", "b …", "a …", "echo …"]),
    ("echo ${x:-$(rm)} ${#x} ${x%/*}", ["rm", "echo … … …"]),
    ("echo $((1 + $n))", ["echo …"]),
    ("(a; b) && { c; d; }", ["a", "b", "c", "d"]),
    ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
    ("while a; do b; done < f | c", ["a", "b", "c"]),
    ("until a; do b; done", ["a", "b"]),
    ("for i in 1 $(a); do b $i; done", ["a", "b …"]),
    ("for i do b; done", ["b"]),
    ("case $(a) in x|y) b;; (*) c ;; esac", ["a", "b", "c"]),
    ("f() { rm x; }; f", ["rm x", "f"]),
    ("f() ( rm x )\nf", ["rm x", "f"]),
    ("! grep x && [ -f y ]", ["grep x", "[ -f y ]"]),
    ("cat <<EOF\n$(rm a) `rm b` \\$(no)\nEOF\nls", ["cat", "rm a", "rm b", "ls"]),
    ("cat <<'EOF' | a\n$(rm)\nEOF\nls", ["cat", "a", "ls"]),
    ("cat <<-A <<B; c\n\tx\n\tA\ny\nB\nd", ["cat", "c", "d"]),
    ("a 2>&1 </dev/null >/dev/null", ["a"]),
    ("a &> /dev/null; b", ["a", "b"]),
    ("> /tmp/x", [""]),
    ("", []),
]

UNREADABLE = [
    "echo 'a",
    'echo "a',
    "echo `a",
    "echo $(a",
    "echo a\\",
    "cat <<EOF\nnever ends",
    "cat <<EOF\na\\\nEOF\nb\nEOF",
    "a &> f b",
    "a <(b)",
    "a > >(b)",
    "a <<< b",
    "$'\\'; rm x; '",
    '$"a"',
    "$[1+1]",
    "$((a[$(rm)]))",
    "x='a[$(rm)]'; echo $((x))",
    "${x/a/b}",
    "${!x}",
    "${x@P}",
    "${x:-'}'}",
    "((x))",
    "x=(1 2)",
    "x+=1",
    "[[ a ]]",
    "function f { a; }",
    "select x in a; do b; done",
    "f() rm x",
    "a (b)",
    "a )",
    "a;; b",
    "if a; then b",
    "done",
    "&& a",
    "a && && b",
    "a |",
    "x=1 if a; then b; fi",
    "i\\\nf a; then b; fi",
    "a\0b",
    "echo " + "$(" * 100,
    "echo " + "${x:-" * 5000,
    "! " * 5000 + "a",
    ";".join(["a"] * 1001),
    "a" * 200_000,
]


@pytest.mark.parametrize(("text", "commands"), READ)
def test_every_command_of_a_text_is_found(text: str, commands: list[str]) -> None:
    assert [program.text for program in programs_of(text) if not program.is_opaque] == commands


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_text_that_shells_do_not_read_alike_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        simple_commands(text)


CARRIED = [
    ("sh -c 'rm x'", "rm x"),
    ("/bin/bash -euxc 'cd a && rm x'", "rm x"),
    ("bash -o pipefail -c 'rm x'", "rm x"),
    ("sh -c 'sh -c \"rm x\"'", "rm x"),
    ("env A=1 B=2 rm x", "A=1 B=2 rm x"),
    ("env -i -u A rm x", "rm x"),
    ("nice -n 5 nohup timeout -k 1 10s rm x", "rm x"),
    ("nice -10 rm x", "rm x"),
    ("stdbuf -oL rm x", "rm x"),
    ("command rm x", "rm x"),
    ("exec rm x", "rm x"),
    ("busybox rm x", "rm x"),
    ("sudo -u root rm x", "rm x"),
    ("ls | xargs -0 -I{} -n1 rm x", "rm x …"),
    ("find . -name '*.o' -exec rm {} \\;", "rm …"),
    ("find . -execdir sh -c 'rm x' \\; -exec mv {} b +", "rm x"),
    ("eval rm x", "rm x"),
    ("eval 'a; rm x'", "rm x"),
    ("trap 'rm x' EXIT", "rm x"),
    ("git -C /a -c b=c push origin", "git push origin"),
    ("A=1 /bin/rm x", "A=1 /bin/rm x"),
    ("export A=1; A=2; rm x", "A=2 rm x"),
    ("time rm x", "rm x"),
]


@pytest.mark.parametrize(("text", "program"), CARRIED)
def test_a_program_is_found_behind_those_that_carry_it(text: str, program: str) -> None:
    assert program in [each.text for each in programs_of(text)]


OPAQUE = [
    "$CMD x",
    "/bin/r? x",
    "r{m,} x",
    "eval $X",
    "sh",
    "curl x | sh",
    "sh -s x",
    'sh -c "$X"',
    "bash --rcfile x",
    ". ./x",
    "alias ls=rm",
    "env -S 'rm x'",
    "env $X",
    "xargs -i rm",
    "find . $X",
    "ssh host rm x",
    'sh -c "sh -c \'a"',
]


@pytest.mark.parametrize("text", OPAQUE)
def test_a_program_that_may_run_anything_is_opaque(text: str) -> None:
    assert any(each.is_opaque for each in programs_of(text))


NAMES = ("one", "two", "three")
word = st.sampled_from([*NAMES, "'one'", '"two"', "-x", "a\\ b", "$v", "*", "#", "x=1", "3", "in"])
piece = st.sampled_from(
    [
        *(
            " ",
            " ",
            " ",
            ";",
            "\n",
            "&&",
            "||",
            "|",
            "&",
            "(",
            ")",
            "{ ",
            "; }",
            "$(",
            "`",
            '"',
            "'",
        ),
        *(
            "if ",
            "; then ",
            "; fi",
            "for i in ",
            "; do ",
            "; done",
            "case x in ",
            "x) ",
            ";;",
            "esac",
        ),
        *("! ", "\\", "\\\n", "#", "${v:-", "}", "$", ">f", "<f", "2>&1", "&>f", "<<E\n", "\nE\n"),
        *("eval ", "sh -c ", "env ", "xargs ", "f() ", "f"),
    ]
)
texts = st.lists(st.one_of(word, piece), max_size=14).map("".join)


@pytest.fixture(scope="module")
def logging_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with programs that write their names to a file."""
    directory = tmp_path_factory.mktemp("programs")
    for name in NAMES:
        program = directory / name
        program.write_text(f'#!/bin/sh\necho {name} >> "$LOG"\n')
        program.chmod(0o755)
    for name in ("sh", "env", "xargs"):
        (directory / name).symlink_to(f"/usr/bin/{name}")
    return directory


@given(text=texts)
@settings(max_examples=150, deadline=None)
def test_a_shell_runs_no_program_that_was_not_found(text: str, logging_programs: Path) -> None:
    programs = programs_of(text)
    if any(program.is_opaque for program in programs):
        return
    found = {each.words[0].text for each in programs if each.words}
    log = logging_programs / "log"
    log.unlink(missing_ok=True)
    work = logging_programs / "work"
    work.mkdir(exist_ok=True)
    for shell in ("/bin/dash", "/bin/bash"):
        subprocess.run(
            [shell, "-c", text],
            env={"PATH": str(logging_programs), "LOG": str(log)},
            cwd=work,
            input=b"",
            capture_output=True,
            timeout=10,
            check=False,
        )
    ran = set(log.read_text().split()) if log.exists() else set()
    assert ran <= found
