"""gRPC in Parley: addresses, limits, problems, servers and channels."""

from parley.rpc.address import Address, Scheme
from parley.rpc.call import (
    CallOrigin,
    acting_for,
    current_caller,
    current_method,
    current_origin,
    detached,
    remaining_s,
    serving,
    set_client_address,
)
from parley.rpc.channel import call_headers, connect
from parley.rpc.channels import Channels, ranked
from parley.rpc.clock_correction import CallTokens
from parley.rpc.errors import (
    AddressInvalid,
    AddressUnusable,
    MethodsMissing,
    NoAddress,
    NoCall,
    RpcError,
)
from parley.rpc.limits import LIMITS, Limits
from parley.rpc.method import check_request
from parley.rpc.problem import Problem, Refusal, Violation, problem_of, refused_call
from parley.rpc.problem_table import ErrorTable, Problems
from parley.rpc.revocations import FollowedRevocations, RevocationTiming
from parley.rpc.server import Registration, RunningServer, answers_encoded, serve
from parley.rpc.tls import TlsFiles
from parley.rpc.tunnelled import TunnelledAnswer, TunnelledMethods

__all__ = [
    "LIMITS",
    "Address",
    "AddressInvalid",
    "AddressUnusable",
    "CallOrigin",
    "CallTokens",
    "Channels",
    "ErrorTable",
    "FollowedRevocations",
    "Limits",
    "MethodsMissing",
    "NoAddress",
    "NoCall",
    "Problem",
    "Problems",
    "Refusal",
    "Registration",
    "RevocationTiming",
    "RpcError",
    "RunningServer",
    "Scheme",
    "TlsFiles",
    "TunnelledAnswer",
    "TunnelledMethods",
    "Violation",
    "acting_for",
    "answers_encoded",
    "call_headers",
    "check_request",
    "connect",
    "current_caller",
    "current_method",
    "current_origin",
    "detached",
    "problem_of",
    "ranked",
    "refused_call",
    "remaining_s",
    "serve",
    "serving",
    "set_client_address",
]
