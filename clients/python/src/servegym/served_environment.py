"""The environment that a server has at an address."""

from __future__ import annotations

from urllib.parse import urljoin

from .errors import ServerError, WrongEnvironment
from .http_api import HttpApi

#: Of the environment at the address itself, relative to which the others stand.
_HERE = "./"


def require_environment(api: HttpApi, wanted: str) -> None:
    """Checks that a server has an environment at its address.

    Raises:
        WrongEnvironment: when it has another one there; it says where the wanted one is.
        ServeGymError: when the server does not answer, or refuses.
    """
    try:
        served = api.get("environments")["environments"]
    except ServerError as error:
        if error.details.get("status") != 404:
            raise
        raise WrongEnvironment(
            f"Expected a ServeGym server with {wanted!r} at {api.base}, and it does not list its environments. "
            f"Give the address of one, or none at all to start one on this machine."
        ) from error
    paths = {each["path"]: each["id"] for each in served}
    found = paths.get(_HERE)
    if found == wanted:
        return
    elsewhere = next((path for path, id_ in paths.items() if id_ == wanted), None)
    advice = (
        f"It has {wanted!r} at {urljoin(api.base, elsewhere)}"
        if elsewhere
        else f"It has no {wanted!r}. Give the address of one that does, or none at all to start one on this machine"
    )
    raise WrongEnvironment(f"Expected {wanted!r} at {api.base}, and the server has {found!r} there. {advice}.")
