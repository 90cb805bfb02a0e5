"""An OpenAI-compatible endpoint for agents: the policy generates, and every token is kept.

    scaffold ──HTTP──► server ──► read_request ──► EndpointRecord.answer ──► policy
                          ◄── written_reply ◄── Reply ◄──┘

A `EndpointRecord` is one episode's: every conversation that the scaffold holds is a `Session` in it.
"""

from vlrl.rollout.endpoint.record import EndpointRecord as EndpointRecord
from vlrl.rollout.endpoint.refusal import Refused as Refused
from vlrl.rollout.endpoint.server import Endpoint as Endpoint
