"""Error responses of the endpoint."""

from __future__ import annotations

from typing import Any

from vlrl.errors import VlrlError


class Refused(VlrlError):
    """A request that is not served, said to the client in OpenAI's form.

    Attributes:
        status: of HTTP.
        code: names the reason for programs.
        field: of the request that is to blame, or None.
    """

    def __init__(
        self, message: str, *, status: int = 400, code: str = "invalid_value", field: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.field = status, code, field

    @property
    def body(self) -> dict[str, Any]:
        """The reply's JSON."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": self.field, "code": self.code}}
