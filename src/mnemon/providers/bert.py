"""A BERT encoder as an ONNX graph, made from weights in the form in which sentence-transformers publishes them.

The graph is some ten thousand bytes and is made in a millisecond: its weights stay outside, and are
handed to the runtime as arrays. So nothing has to be converted beforehand or kept on the disk.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper, numpy_helper

from mnemon.errors import InvalidSettings

_OPERATORS = 20  # the set that has Gelu
_FORMAT = 9  # what goes with it

Array = npt.NDArray[Any]


def encoder(config: Mapping[str, Any], weights: Mapping[str, Array]) -> tuple[bytes, dict[str, Array]]:
    """The graph, and the arrays by the names that it has for them.

    It takes `input_ids` and `attention_mask`, and gives the state of each token. `config` is the
    model's `config.json`.
    """
    kind = tuple(config.get(key) for key in ("model_type", "hidden_act"))
    if kind != ("bert", "gelu") or config.get("position_embedding_type", "absolute") != "absolute":
        raise InvalidSettings(
            f"weights of the kind {kind[0]!r} with {kind[1]!r} cannot be run from safetensors: "
            "export the model to ONNX, and put model.onnx into its folder"
        )
    try:
        return _Encoder(config, weights).build()
    except KeyError as error:
        raise InvalidSettings(f"the model's config.json or model.safetensors lacks {error}") from error


class _Encoder:
    """Collects the graph's nodes and arrays. Each method adds some nodes and gives the name of what they make."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, Array]) -> None:
        self._weights = {name.removeprefix("bert."): array for name, array in weights.items()}
        self._layers: int = config["num_hidden_layers"]
        self._heads: int = config["num_attention_heads"]
        self._width: int = config["hidden_size"]
        self._epsilon: float = config["layer_norm_eps"]
        self._nodes: list[NodeProto] = []
        self._constants: dict[str, TensorProto] = {}
        self._arrays: dict[str, Array] = {}

    def build(self) -> tuple[bytes, dict[str, Array]]:
        states = self._embeddings()
        masking = self._masking()
        for number in range(self._layers):
            states = self._layer(states, masking, f"encoder.layer.{number}")
        self._add("Identity", [states], "last_hidden_state")
        graph = helper.make_graph(
            self._nodes,
            "encoder",
            [_described(name, TensorProto.INT64, ["texts", "tokens"]) for name in ("input_ids", "attention_mask")],
            [_described("last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", self._width])],
            [*self._constants.values(), *(_outside(name, array) for name, array in self._arrays.items())],
        )
        operators = [helper.make_opsetid("", _OPERATORS)]
        model = helper.make_model(graph, opset_imports=operators, ir_version=_FORMAT)
        return model.SerializeToString(), self._arrays

    def _embeddings(self) -> str:
        """Words and their places. There is only one sentence, so that its embedding goes in with the places'."""
        words = self._array("words", self._weights["embeddings.word_embeddings.weight"])
        kind = self._weights["embeddings.token_type_embeddings.weight"][0]
        places = self._array("places", self._weights["embeddings.position_embeddings.weight"] + kind)
        length = self._add("Shape", ["input_ids"], "length", start=1, end=2)
        first = self._constant("first", [0])
        placed = self._add("Slice", [places, first, length], "placed")
        meaning = self._add("Gather", [words, "input_ids"], "meaning")
        return self._normalise(self._add("Add", [meaning, placed], "embedded"), "embeddings.LayerNorm")

    def _masking(self) -> str:
        """What is added to the attention that a token pays to another: next to nothing is left for padding."""
        mask = self._add("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
        wide = self._add("Unsqueeze", [mask, self._constant("axes", [1, 2])], "wide_mask")
        padding = self._add("Sub", [self._constant("one", [1.0]), wide], "padding")
        return self._add("Mul", [padding, self._constant("hidden", [-1e9])], "masking")

    def _layer(self, states: str, masking: str, name: str) -> str:
        attended = self._attention(states, masking, f"{name}.attention")
        states = self._merge(states, attended, f"{name}.attention.output")
        inner = self._add("Gelu", [self._dense(states, f"{name}.intermediate.dense")], f"{name}.inner")
        return self._merge(states, inner, f"{name}.output")

    def _attention(self, states: str, masking: str, name: str) -> str:
        query = self._part(states, f"{name}.self.query", [0, 2, 1, 3])
        key = self._part(states, f"{name}.self.key", [0, 2, 3, 1])
        value = self._part(states, f"{name}.self.value", [0, 2, 1, 3])
        scale = self._constant("scale", [(self._width // self._heads) ** -0.5])
        scores = self._add("MatMul", [self._add("Mul", [query, scale], f"{name}.scaled"), key], f"{name}.scores")
        shares = self._add(
            "Softmax", [self._add("Add", [scores, masking], f"{name}.masked")], f"{name}.shares", axis=-1
        )
        mixed = self._add("MatMul", [shares, value], f"{name}.mixed")
        turned = self._add("Transpose", [mixed], f"{name}.turned", perm=[0, 2, 1, 3])
        joined = self._constant("joined", [0, 0, self._width])
        return self._add("Reshape", [turned, joined], f"{name}.attended")

    def _part(self, states: str, name: str, order: list[int]) -> str:
        """A projection of the states, apart for each head."""
        shape = self._constant("heads", [0, 0, self._heads, self._width // self._heads])
        split = self._add("Reshape", [self._dense(states, name), shape], f"{name}.split")
        return self._add("Transpose", [split], f"{name}.part", perm=order)

    def _merge(self, states: str, change: str, name: str) -> str:
        changed = self._add("Add", [self._dense(change, f"{name}.dense"), states], f"{name}.changed")
        return self._normalise(changed, f"{name}.LayerNorm")

    def _dense(self, states: str, name: str) -> str:
        weight = self._array(f"{name}.weight", self._weights[f"{name}.weight"].T)
        bias = self._array(f"{name}.bias", self._weights[f"{name}.bias"])
        return self._add("Add", [self._add("MatMul", [states, weight], f"{name}.product"), bias], f"{name}.sum")

    def _normalise(self, states: str, name: str) -> str:
        arrays = [self._array(f"{name}.{part}", self._weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        return self._add("LayerNormalization", [states, *arrays], f"{name}.normal", axis=-1, epsilon=self._epsilon)

    def _constant(self, name: str, values: list[int] | list[float]) -> str:
        kind = np.float32 if isinstance(values[0], float) else np.int64
        self._constants[name] = numpy_helper.from_array(np.array(values, kind), name)
        return name

    def _array(self, name: str, array: Array) -> str:
        self._arrays[name] = np.ascontiguousarray(array)
        return name

    def _add(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [output], **attributes))
        return output


def _described(name: str, kind: int, shape: list[str | int]) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def _outside(name: str, array: Array) -> TensorProto:
    """An array that the runtime gets by its name."""
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    tensor = TensorProto(name=name, data_type=kind, dims=array.shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="memory")
    return tensor
