"""Looking after keys."""

from tests.access.world import Method

HERS, HIS = "user:alice", "user:bob"

METHODS: dict[str, Method] = {
    "keys.status": Method(
        "admin",
        lambda m: m.keys.status(HERS),
        [lambda m: m.keys.status(HIS), lambda m: m.keys.status("user"), lambda m: m.keys.status()],
    ),
    "keys.rewrap": Method("root", lambda m: m.keys.rewrap(), [lambda m: m.keys.rewrap()]),
    "keys.rotate": Method(
        "admin",
        lambda m: m.keys.rotate(HERS),
        [lambda m: m.keys.rotate(HIS), lambda m: m.keys.rotate("user"), lambda m: m.keys.rotate()],
    ),
    "keys.reseal": Method(
        "admin",
        lambda m: m.keys.reseal(HERS),
        [lambda m: m.keys.reseal(HIS), lambda m: m.keys.reseal("user"), lambda m: m.keys.reseal()],
    ),
    "keys.drop": Method(
        "admin",
        lambda m: m.keys.drop(HERS),
        [lambda m: m.keys.drop(HIS), lambda m: m.keys.drop("user"), lambda m: m.keys.drop()],
    ),
}
