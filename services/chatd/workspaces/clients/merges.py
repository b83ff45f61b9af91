"""Reports and strategies of merges as protos."""

from collections.abc import Iterable
from datetime import UTC

from chatd.workspaces.domain.merges import (
    AppliedMerge,
    MergeConflict,
    MergePatch,
    MergeReport,
    MergeStrategy,
)
from parley.api.workspace.v1 import workspace_pb2

_KIND = "MERGE_CONFLICT_KIND_"
_STRATEGY = "MERGE_STRATEGY_"


def strategy_of(strategy: "workspace_pb2.MergeStrategy.ValueType") -> MergeStrategy:
    """Convert a strategy from its proto; one that is not specified reports."""
    name = workspace_pb2.MergeStrategy.Name(strategy).removeprefix(_STRATEGY).lower()
    return MergeStrategy.REPORT if name == "unspecified" else MergeStrategy(name)


def strategy_to_proto(strategy: MergeStrategy) -> "workspace_pb2.MergeStrategy.ValueType":
    """Convert a strategy to its proto."""
    return workspace_pb2.MergeStrategy.Value(f"{_STRATEGY}{strategy.name}")


def report_of(report: workspace_pb2.MergeReport) -> MergeReport:
    """Convert the report of a node."""
    return MergeReport(
        is_applied=report.applied,
        merged_paths=tuple(report.merged_paths),
        conflicts=tuple(
            MergeConflict(
                each.path,
                workspace_pb2.MergeConflictKind.Name(each.kind).removeprefix(_KIND).lower(),
                each.preview,
            )
            for each in report.conflicts
        ),
        omitted=report.omitted,
        patches=_patches_of(report.patches),
        left_out_paths=tuple(report.left_out_paths),
        applied_merges=tuple(
            AppliedMerge(
                each.applied_at.ToDatetime(tzinfo=UTC),
                tuple(each.paths),
                each.omitted,
                _patches_of(each.patches),
            )
            for each in report.applied_merges
        ),
    )


def report_to_proto(report: MergeReport) -> workspace_pb2.MergeReport:
    """Convert a report for the caller."""
    return workspace_pb2.MergeReport(
        applied=report.is_applied,
        merged_paths=report.merged_paths,
        conflicts=[
            workspace_pb2.MergeConflict(
                path=each.path,
                kind=workspace_pb2.MergeConflictKind.Value(f"{_KIND}{each.kind.upper()}"),
                preview=each.preview,
            )
            for each in report.conflicts
        ],
        omitted=report.omitted,
        patches=_patches_to_proto(report.patches),
        left_out_paths=report.left_out_paths,
        applied_merges=map(_applied_to_proto, report.applied_merges),
    )


def _applied_to_proto(merge: AppliedMerge) -> workspace_pb2.AppliedMerge:
    told = workspace_pb2.AppliedMerge(
        paths=merge.paths, omitted=merge.omitted, patches=_patches_to_proto(merge.patches)
    )
    told.applied_at.FromDatetime(merge.applied_at)
    return told


def _patches_of(patches: Iterable[workspace_pb2.MergePatch]) -> tuple[MergePatch, ...]:
    return tuple(MergePatch(each.path, each.patch) for each in patches)


def _patches_to_proto(patches: Iterable[MergePatch]) -> list[workspace_pb2.MergePatch]:
    return [workspace_pb2.MergePatch(path=each.path, patch=each.patch) for each in patches]
