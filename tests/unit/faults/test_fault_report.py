from support.faults.report import FaultReport, RowReport


def test_a_row_goes_through_a_text_and_says_the_same() -> None:
    row = RowReport("A1", faults=1, trials=5, acknowledged=7, problems=["lost: one"])
    row.counts["takeovers"] += 2
    row.figures["answered_s"].append(0.5)

    read = RowReport.parse(row.dump())

    assert read == row
    assert FaultReport([read]).table() == FaultReport([row]).table()
    assert read.document() == row.document()
