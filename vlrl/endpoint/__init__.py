"""An OpenAI-compatible endpoint for agents: what they ask for is drawn by the policy and kept token by token.

    scaffold ──HTTP──► server ──► read_request ──► Record.answer ──► policy
                          ◄── written_reply ◄── Reply ◄──┘

A `Record` is one episode's: every conversation that the scaffold holds is a `Session` in it.
"""

from vlrl.endpoint.record import Record as Record
from vlrl.endpoint.refusal import Refused as Refused
from vlrl.endpoint.server import Endpoint as Endpoint
