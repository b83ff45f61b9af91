"""ModelService: all its methods in one servicer."""

from chatd.models.rpc.keys import KeyMethods
from chatd.models.rpc.models import ModelMethods
from chatd.models.rpc.providers import ProviderMethods


class ModelServicer(ModelMethods, ProviderMethods, KeyMethods):
    """Serves providers, keys, models and overrides."""
