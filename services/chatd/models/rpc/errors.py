"""Maps errors of the catalogue of models to gRPC problems."""

from typing import Final

from chatd.models.domain.errors import KeyNeeded, KeyOrderMismatch, ModelNotFound
from chatd.primitives.rpc.errors import violations_of
from parley.rpc import ErrorTable, Problem, Violation


def _model_not_found(error: ModelNotFound) -> Problem:
    return Problem.of(
        "MODEL_NOT_FOUND",
        "There is no such model, or it is switched off; choose one of the list of models.",
        {"model_id": error.model_id},
        violations=violations_of(error.problems),
    )


def _key_needed(error: KeyNeeded) -> Problem:
    problem = (
        f"give the key again: the stored keys were given for {error.old_origin} and would be sent "
        f"to {error.new_origin or 'another host'}. It replaces the stored keys; null removes them"
    )
    return Problem.of(
        "KEY_NEEDED",
        "The change would send stored keys to another host; give the key again in the same "
        "request, or null to remove the stored keys.",
        {"old_origin": error.old_origin, "new_origin": error.new_origin},
        violations=(Violation("key", problem),),
    )


def _key_order_mismatch(error: KeyOrderMismatch) -> Problem:
    return Problem.of(
        "KEY_ORDER_MISMATCH",
        "The order has to name each key of the provider once; read the provider again.",
        {"provider_id": error.provider_id},
        violations=violations_of(error.problems),
    )


MODEL_ERRORS: Final[ErrorTable] = {
    ModelNotFound: _model_not_found,
    KeyNeeded: _key_needed,
    KeyOrderMismatch: _key_order_mismatch,
}
