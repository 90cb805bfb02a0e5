"""An exported folder on a hub that speaks Hugging Face's protocol (HF_ENDPOINT, HF_TOKEN)."""

from __future__ import annotations

from pathlib import Path

from vlrl.errors import ConfigError, ResourceError


def push(folder: Path, repo: str, *, private: bool, message: str) -> str:
    """Upload a folder as one commit, and return its address; unchanged files are not sent again.

    Args:
        folder: an exported model.
        repo: NAMESPACE/NAME, made if it is missing.
        private: of a new repository.
        message: of the commit.

    Raises:
        ConfigError: if the hub refuses the token or the name.
        ResourceError: if it cannot be reached.
    """
    import httpx2
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    api = HfApi()
    try:
        api.create_repo(repo, private=private, exist_ok=True)
        commit = api.upload_folder(repo_id=repo, folder_path=folder, commit_message=message)
    except HFValidationError as error:
        raise ConfigError(f"--push {repo}: {error}") from error
    except OfflineModeIsEnabled as error:
        raise ConfigError(f"--push {repo}: HF_HUB_OFFLINE is set; unset it. {folder} is whole") from error
    except HfHubHTTPError as error:
        code = error.response.status_code
        remedy = (
            "give a token that may write (HF_TOKEN, or `hf auth login`)"
            if code in (401, 403)
            else "try again"
        )
        raise ConfigError(
            f"--push {repo}: {api.endpoint} answered {code} ({error.server_message or error}); {remedy}. "
            f"{folder} is whole, and `hf upload` sends it too"
        ) from error
    except (httpx2.HTTPError, OSError) as error:
        raise ResourceError(
            f"--push {repo}: {api.endpoint} cannot be reached ({error}); try again, {folder} is whole"
        ) from error
    return str(commit.commit_url)
