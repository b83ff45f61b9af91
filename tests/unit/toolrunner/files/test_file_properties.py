"""Whatever is done to files can be undone, and whatever is planned is done."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from support.session.examples import examples
from support.toolrunner.file_workers import change, here, write
from toolrunner.fileworker.content.detection import file_type_of, text_of
from toolrunner.fileworker.protocol import PlanEdits, PlanPatch, PlanRestore
from toolrunner.fileworker.values import FileEdit, TextEdit

CONTENT = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet="ab\r\n \té", max_size=60).map(str.encode),
    st.text(alphabet="ab\r\n", max_size=60).map(lambda text: text.encode("utf-16")),
)
WORDS = st.text(alphabet="ab\n", min_size=1, max_size=3)


@settings(max_examples=examples(60), deadline=None)
@given(CONTENT, st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4), CONTENT)
def test_changes_taken_back_in_order_restore_every_byte(
    content: bytes, edits: list[tuple[str, str]], written: bytes
) -> None:
    with tempfile.TemporaryDirectory() as directory, here(Path(directory)) as worker:
        path = Path(directory) / "f"
        path.write_bytes(content)
        plans = [
            change(
                worker, PlanEdits("t", (FileEdit("f", (TextEdit(old, new, replace_all=True),)),))
            )
            for old, new in edits
        ]
        plans.append(write(worker, "f", written))
        plans.append(
            change(worker, PlanPatch("p", "*** Begin Patch\n*** Delete File: f\n*** End Patch"))
        )
        assert not path.exists()
        for plan in reversed(plans):
            change(worker, PlanRestore("u", plan.images))
        assert path.read_bytes() == content
        assert [each.name for each in Path(directory).iterdir()] == ["f"]


@given(CONTENT)
def test_a_text_is_written_back_as_it_was_read(content: bytes) -> None:
    text = text_of(content)
    if text is not None:
        assert text.encoded(text.text) == content
    else:
        assert file_type_of(content).kind != "empty"
