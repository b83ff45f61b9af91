from dataclasses import replace

import pytest

from toolrunner.sandbox import (
    PROXY_PORT,
    BelowMinimum,
    Confinement,
    Egress,
    Layer,
    Level,
    Network,
    NotEnforceable,
    Profile,
    Report,
    SandboxPaths,
    Trials,
    judge,
    plan,
)

EVERYTHING = Trials(is_root=True, landlock_abi=7, kernel="6.18")
NO_NAMESPACES = dict.fromkeys(
    (
        Layer.USER_NAMESPACE,
        Layer.MOUNT_NAMESPACE,
        Layer.PID_NAMESPACE,
        Layer.NETWORK_NAMESPACE,
    ),
    "denied",
)
CONTAINER = replace(EVERYTHING, failures={**NO_NAMESPACES, Layer.CGROUP: "read-only"})
ORDINARY = replace(EVERYTHING, is_root=False, failures={**NO_NAMESPACES, Layer.UID: "no root"})
NO_LANDLOCK = {Layer.LANDLOCK_FILES: "old", Layer.LANDLOCK_NETWORK: "old"}
PLACE = SandboxPaths("/w/files", "/w/home", "/w/tmp", uid=20_001)
EGRESS = Egress(4000)


def report_of(trials: Trials, level: Level | None = None) -> Report:
    return judge(trials, minimum=Level.NONE, forced=level)


@pytest.mark.parametrize(
    ("trials", "level"),
    [
        (EVERYTHING, Level.NS),
        (replace(EVERYTHING, is_reachable=False), Level.NS),
        (CONTAINER, Level.LANDLOCK),
        (replace(CONTAINER, landlock_abi=1), Level.LANDLOCK),
        (replace(CONTAINER, landlock_abi=1, is_reachable=False), Level.NONE),
        # Landlock alone, with the user of the service.
        (replace(CONTAINER, landlock_abi=6, is_reachable=False), Level.NONE),
        (ORDINARY, Level.NONE),
        (replace(EVERYTHING, is_root=False, failures={Layer.UID: "no root"}), Level.NS),
        (replace(CONTAINER, landlock_abi=1, is_reachable=False, kept_capability=2), Level.LANDLOCK),
        (
            replace(
                CONTAINER,
                landlock_abi=0,
                is_reachable=False,
                kept_capability=2,
                failures={**NO_NAMESPACES, **NO_LANDLOCK},
            ),
            Level.NONE,
        ),
        (
            replace(CONTAINER, landlock_abi=0, failures={**NO_NAMESPACES, **NO_LANDLOCK}),
            Level.UID,
        ),
        (replace(EVERYTHING, landlock_abi=0, failures=NO_LANDLOCK), Level.NS),
        (replace(EVERYTHING, failures={Layer.SECCOMP: "none"}), Level.UID),
        (
            replace(
                EVERYTHING,
                is_root=False,
                landlock_abi=0,
                failures={**NO_NAMESPACES, **NO_LANDLOCK, Layer.UID: "no root"},
            ),
            Level.NONE,
        ),
    ],
)
def test_the_level_is_the_strongest_whose_layers_all_work(trials: Trials, level: Level) -> None:
    assert report_of(trials).level is level


def test_landlock_with_the_user_of_the_service_counts_as_none_and_is_applied() -> None:
    with pytest.raises(BelowMinimum) as refused:
        judge(ORDINARY, minimum=Level.LANDLOCK)
    for words in ('"none"', "no root", "user namespaces", "TOOLRUNNER_SANDBOX_MINIMUM=none"):
        assert words in str(refused.value)
    report = report_of(ORDINARY)
    assert (report.level, report.applied) == (Level.NONE, Level.LANDLOCK)
    assert "do not isolate" in report.summary
    found = plan(report, paths=replace(PLACE, uid=-1), profile=Profile.READ_ONLY)
    assert (found.level, found.profile, found.network) == (
        Level.NONE,
        Profile.READ_ONLY,
        Network.NONE,
    )
    assert {Layer.LANDLOCK_FILES, Layer.SECCOMP} <= set(found.layers)


def test_a_directory_of_the_services_user_tells_level_none_where_only_landlock_confines() -> None:
    of_the_service = replace(PLACE, uid=-1)
    assert plan(report_of(CONTAINER), paths=of_the_service).level is Level.NONE
    assert plan(report_of(CONTAINER), paths=PLACE).level is Level.LANDLOCK
    assert plan(report_of(EVERYTHING), paths=of_the_service).level is Level.NS


def test_a_node_below_its_minimum_is_refused_and_told_why_and_how() -> None:
    weak = replace(CONTAINER, landlock_abi=0, failures={**NO_NAMESPACES, **NO_LANDLOCK})
    with pytest.raises(BelowMinimum) as refused:
        judge(weak, minimum=Level.LANDLOCK)
    assert refused.value.report.level is Level.UID
    for words in ('"uid"', '"landlock"', "old", "5.13", "TOOLRUNNER_SANDBOX_MINIMUM=uid"):
        assert words in str(refused.value)


def test_a_level_can_be_held_down_and_never_up() -> None:
    assert report_of(EVERYTHING, Level.UID).level is Level.UID
    assert report_of(CONTAINER, Level.NS).level is Level.LANDLOCK


def test_bounds_that_a_user_namespace_cannot_have_are_told_and_the_level_stays() -> None:
    report = report_of(replace(EVERYTHING, bounds_users=False))
    told = [each for each in report.missing if each.layer is Layer.RLIMITS]
    assert [each.cause for each in told] == ["/proc/sys/user cannot be written in a user namespace"]
    assert (report.level, Layer.RLIMITS in report.layers) == (Level.NS, True)


def test_whatever_is_missing_has_cause_effect_and_remedy() -> None:
    nothing = replace(
        EVERYTHING,
        is_root=False,
        landlock_abi=0,
        failures=dict.fromkeys(set(Layer) - {Layer.VM, Layer.DESCRIPTORS, Layer.RLIMITS}, "broken"),
    )
    missing = report_of(nothing).missing
    assert {each.layer for each in missing} >= set(NO_NAMESPACES) | {Layer.VM, Layer.UID}
    assert all(each.cause and each.effect and each.remedy for each in missing)
    assert all(
        len(text) <= 500 for each in missing for text in (each.cause, each.effect, each.remedy)
    )


def test_all_layers_are_applied_in_their_order() -> None:
    found = plan(report_of(EVERYTHING), paths=PLACE, profile=Profile.FULL, processes=9)
    assert found == Confinement(
        level=Level.NS,
        layers=(
            Layer.CGROUP,
            Layer.USER_NAMESPACE,
            Layer.PID_NAMESPACE,
            Layer.NETWORK_NAMESPACE,
            Layer.MOUNT_NAMESPACE,
            Layer.DESCRIPTORS,
            Layer.RLIMITS,
            Layer.UID,
            Layer.NO_NEW_PRIVILEGES,
            Layer.LANDLOCK_FILES,
            Layer.SECCOMP,
        ),
        profile=Profile.FULL,
        network=Network.NONE,
        root="/w/files",
        home="/w/home",
        temporary="/w/tmp",
        uid=20_001,
        has_own_proc=True,
        landlock_abi=7,
        processes=9,
        nice=5,
    )


def test_a_plan_survives_its_journey() -> None:
    found = plan(report_of(EVERYTHING), paths=PLACE, network=Network.PROXY, egress=EGRESS)
    assert Confinement.of(found.document()) == found


def test_a_plan_is_sent_by_the_names_that_older_spawners_know() -> None:
    assert sorted(plan(report_of(EVERYTHING), paths=PLACE).document()) == [
        *(
            "has_own_proc",
            "home",
            "landlock_abi",
            "layers",
            "level",
            "may_watch",
            "network",
            "nice",
        ),
        *("passage", "processes", "profile", "proxy_port", "readable", "root", "temporary", "uid"),
    ]


@pytest.mark.parametrize("level", [Level.NONE, Level.UID])
@pytest.mark.parametrize("network", [Network.NONE, Network.PROXY])
def test_a_closed_network_is_not_promised_where_nothing_keeps_it(
    level: Level, network: Network
) -> None:
    with pytest.raises(NotEnforceable) as refused:
        plan(report_of(EVERYTHING, level), paths=PLACE, network=network)
    assert refused.value.required is Level.LANDLOCK


@pytest.mark.parametrize("level", [Level.NONE, Level.UID])
def test_read_only_is_not_promised_where_nothing_keeps_it(level: Level) -> None:
    with pytest.raises(NotEnforceable):
        plan(report_of(EVERYTHING, level), paths=PLACE, profile=Profile.READ_ONLY)


@pytest.mark.parametrize(
    ("level", "profile", "network"),
    [
        (Level.NONE, Profile.FULL, Network.OPEN),
        (Level.UID, Profile.FULL, Network.OPEN),
        (Level.LANDLOCK, Profile.READ_ONLY, Network.NONE),
        (Level.NS, Profile.READ_ONLY, Network.NONE),
    ],
)
def test_who_says_nothing_gets_as_little_as_can_be_kept(
    level: Level, profile: Profile, network: Network
) -> None:
    found = plan(report_of(EVERYTHING, level), paths=PLACE)
    assert (found.profile, found.network) == (profile, network)


def test_the_profile_that_is_told_is_the_one_that_is_kept() -> None:
    asked = Profile.WORKSPACE_WRITE
    assert plan(report_of(EVERYTHING), paths=PLACE, profile=asked).profile is asked
    weaker = plan(report_of(CONTAINER), paths=PLACE, profile=asked)
    assert weaker.profile is Profile.FULL


def test_a_proxy_is_at_the_door_of_a_network_of_its_own_and_at_its_port_elsewhere() -> None:
    apart = plan(report_of(EVERYTHING), paths=PLACE, network=Network.PROXY, egress=EGRESS)
    assert apart.proxy_port == PROXY_PORT
    shared = plan(report_of(CONTAINER), paths=PLACE, network=Network.PROXY, egress=EGRESS)
    assert shared.proxy_port == 4000


def test_without_a_proxy_or_its_port_nothing_is_reached() -> None:
    assert plan(report_of(EVERYTHING), paths=PLACE, network=Network.PROXY).network is Network.NONE
    old = replace(CONTAINER, landlock_abi=3)
    found = plan(report_of(old), paths=PLACE, network=Network.PROXY, egress=EGRESS)
    assert found.network is Network.NONE


@pytest.mark.parametrize(
    ("level", "network", "closing"),
    [
        (Level.NS, Network.NONE, {Layer.NETWORK_NAMESPACE}),
        (Level.NS, Network.OPEN, set()),
        (Level.LANDLOCK, Network.NONE, {Layer.LANDLOCK_NETWORK}),
        (Level.LANDLOCK, Network.OPEN, set()),
    ],
)
def test_a_network_is_closed_by_one_layer_and_an_open_one_by_none(
    level: Level, network: Network, closing: set[Layer]
) -> None:
    found = plan(report_of(EVERYTHING, level), paths=PLACE, network=network)
    assert set(found.layers) & {Layer.NETWORK_NAMESPACE, Layer.LANDLOCK_NETWORK} == closing


def test_files_of_the_service_keep_its_user() -> None:
    found = plan(report_of(EVERYTHING), paths=replace(PLACE, uid=-1))
    assert (found.uid, found.has(Layer.UID)) == (-1, False)


@pytest.mark.parametrize(
    ("report", "required"),
    [
        (report_of(EVERYTHING, Level.UID), Level.LANDLOCK),
        (report_of(replace(CONTAINER, landlock_abi=5)), Level.NS),
    ],
)
def test_files_of_the_service_are_refused_where_only_another_user_would_confine(
    report: Report, required: Level
) -> None:
    with pytest.raises(NotEnforceable) as refused:
        plan(report, paths=replace(PLACE, uid=-1), profile=Profile.FULL)
    assert refused.value.required is required


def test_level_uid_refuses_dangerous_calls_too_where_there_is_a_filter() -> None:
    assert Layer.SECCOMP in report_of(EVERYTHING, Level.UID).layers
    without = replace(EVERYTHING, failures={Layer.SECCOMP: "none"})
    assert Layer.SECCOMP not in report_of(without, Level.UID).layers


def test_a_user_that_cannot_walk_to_its_files_is_used_only_where_they_are_mounted() -> None:
    closed = replace(EVERYTHING, is_reachable=False)
    assert Layer.UID in report_of(closed).layers
    outside = report_of(closed, Level.LANDLOCK)
    assert Layer.UID not in outside.layers
    assert Layer.UID in {each.layer for each in outside.missing}


def test_a_user_walks_through_closed_directories_only_where_landlock_says_what_it_finds() -> None:
    closed = replace(EVERYTHING, is_reachable=False, kept_capability=2)
    found = {
        level: (Layer.UID in report.layers, plan(report, paths=PLACE).kept_capability)
        for level in (Level.NS, Level.LANDLOCK)
        for report in (report_of(closed, level),)
    }
    assert found == {Level.NS: (True, 0), Level.LANDLOCK: (True, 2)}
    assert Layer.UID not in report_of(closed, Level.UID).layers
    open_to_all = report_of(replace(closed, is_reachable=True), Level.LANDLOCK)
    assert plan(open_to_all, paths=PLACE).kept_capability == 0
    of_the_service = replace(PLACE, uid=-1)
    assert plan(report_of(closed, Level.LANDLOCK), paths=of_the_service).kept_capability == 0


@pytest.mark.parametrize(
    ("profile", "writable"),
    [
        (Profile.READ_ONLY, ("/w/tmp",)),
        (Profile.WORKSPACE_WRITE, ("/w/files", "/w/home", "/w/tmp")),
        (Profile.FULL, ("/w/files", "/w/home", "/w/tmp")),
    ],
)
def test_a_profile_says_what_may_be_written(profile: Profile, writable: tuple[str, ...]) -> None:
    assert plan(report_of(EVERYTHING), paths=PLACE, profile=profile).writable == writable
