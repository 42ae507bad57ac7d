"""Files that were damaged or forged are refused with one clear error, and never crash."""

import hashlib
import json
import random
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from sparsvm import load_model
from sparsvm.io.tables import LARGEST_EXPANSION

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.safetensors"))
ORIGINALS = [path.read_bytes() for path in GOLDEN]
CHECKSUM = re.compile(rb'"sha256":"([0-9a-f]{64})"')
HOSTILE = [
    -1, 0, 1, 2, 7, 2**31, 2**62, 2**63, 2**200, 1e308, -0.5, True, None, "", "a\0b", "nan",
    "x" * 300, [], [[]], [1, 2], {}, {"float": "nan"}, {"tuple": []}, {"dict": [[[], 1]]},
    {"array": 1}, {"object": {"class": "os.system", "parameters": {}}}, {"not_saved": "x"},
]  # fmt: skip


def refused(content, path):
    """Whether loading a file of that content raises one clear error; the model if it does not."""
    path.unlink(missing_ok=True)  # to overwrite a file is ten times slower than to make one
    path.write_bytes(content)
    try:
        return load_model(path)
    except ValueError as error:
        assert str(error).startswith(f"{str(path)!r} cannot be loaded as a model: ")
        assert str(error).endswith(".")
        return True


def damaged(content, choose):
    """Return a file with one thing wrong, as disks, networks and editors do it."""
    kind, at = choose.randrange(8), choose.randrange(len(content))
    length = choose.choice([1, 2, 8, 64])
    if kind == 0:
        flipped = bytes([content[at] ^ (1 << choose.randrange(8))])
        return content[:at] + flipped + content[at + 1 :]
    if kind == 1:
        return content[:at]
    if kind == 2:
        return content + choose.randbytes(length)
    if kind == 3:
        return content[:at] + choose.randbytes(length) + content[at + length :]
    if kind == 4:
        return content[:at] + content[at + length :]
    if kind == 5:
        return content[:at] + choose.randbytes(length) + content[at:]
    if kind == 6:
        huge = choose.choice([0, 1, 2**31, 2**63, 2**64 - 1, choose.randrange(len(content))])
        return struct.pack("<Q", huge) + content[8:]
    other = choose.choice(ORIGINALS)
    return content[:at] + other[at:]


def sealed(content):
    """Return it with the checksum that it should have, as one who forges a file would."""
    found = CHECKSUM.search(content)
    if found is None:
        return content
    begin, end = found.span(1)
    blank = content[:begin] + b"0" * 64 + content[end:]
    return content[:begin] + hashlib.sha256(blank).hexdigest().encode() + content[end:]


def places(value, at=()):
    """Yield the places of everything inside a JSON value."""
    yield at
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*at, key))


def forged(content, choose):
    """Return a file in whose header, or JSON in it, one value is another, with its checksum."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    metadata = header["__metadata__"]
    inside = choose.random() < 0.7
    name = choose.choice([n for n in metadata if metadata[n][:1] == "{"])
    target = json.loads(metadata[name]) if inside else header
    at = choose.choice(list(places(target))[1:])
    holder = target
    for key in at[:-1]:
        holder = holder[key]
    if choose.random() < 0.3:
        del holder[at[-1]]
    else:
        holder[at[-1]] = choose.choice([*HOSTILE, choose.randrange(100)])
    if inside:
        metadata[name] = json.dumps(target)
    text = json.dumps(header, separators=(",", ":")).encode()
    data = content[8 + length :]
    if choose.random() < 0.2:  # NaN, infinity and the like in the arrays
        data = bytearray(data)
        at = 8 * choose.randrange(len(data) // 8)
        data[at : at + 8] = struct.pack("<d", choose.choice([np.nan, np.inf, -np.inf, -1.0]))
    return sealed(struct.pack("<Q", len(text)) + text + bytes(data))


def usable(model):
    """Whether a model predicts, and its scores are those of its coefficients."""
    samples = np.random.default_rng(0).standard_normal((20, model.n_features_in_))
    samples = samples.astype(model.coef_.dtype)
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    coef = model.coef_ if isinstance(model.coef_, np.ndarray) else model.coef_.toarray()
    expected = samples @ coef.T + model.intercept_
    scores = model.decision_function(samples).reshape(expected.shape)
    np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-3)
    return set(model.predict(samples)) <= set(model.classes_)


def test_ten_thousand_damaged_files_are_all_refused(tmp_path):
    choose = random.Random(0)
    for number in range(10_000):
        original = ORIGINALS[number % len(ORIGINALS)]
        content = damaged(original, choose)
        if content not in ORIGINALS:
            assert refused(content, tmp_path / "model") is True


def test_ten_thousand_forged_files_are_refused_or_whole_models(tmp_path):
    choose = random.Random(1)
    loaded = 0
    for number in range(10_000):
        original = ORIGINALS[number % len(ORIGINALS)]
        even = number // len(ORIGINALS) % 2
        content = forged(original, choose) if even else sealed(damaged(original, choose))
        model = refused(content, tmp_path / "model")
        if model is not True:
            loaded += 1
            assert usable(model)
    # Other parameters, labels and coefficients are other models. Most changes are none.
    assert 500 < loaded < 5000


def rebuilt(change, path=GOLDEN[-1]):
    """Return a golden file whose header was changed by a function, with its checksum."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode()
    return sealed(struct.pack("<Q", len(text)) + text + content[8 + length :])


def in_metadata(name, change):
    """Return a change of the JSON in one entry of the metadata."""

    def changed(header):
        value = json.loads(header["__metadata__"][name])
        change(value)
        header["__metadata__"][name] = json.dumps(value)

    return changed


def test_an_unchanged_file_that_is_sealed_again_loads(tmp_path):
    assert usable(refused(rebuilt(lambda header: None), tmp_path / "model"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda h: h["coef_.indices"].update(shape=[-4]), "no lists of counts"),
        (lambda h: h["coef_.indices"].update(shape=[2**62]), "does not fit"),
        (lambda h: h["intercept_"].update(dtype="F16"), "unknown type 'F16'"),
        (lambda h: h["intercept_"].update(data_offsets=[0, 8]), "begins at byte 0"),
        (lambda h: h.update(more=h["intercept_"]), "begins at byte"),
        (lambda h: h["__metadata__"].update(format="pt"), "not a model file of sparsvm"),
        (lambda h: h["__metadata__"].update(format_version="2"), "install a later sparsvm"),
        (lambda h: h["__metadata__"].update({"class": "Popen"}), "class 'Popen'"),
        (in_metadata("attributes", lambda a: a.update(predict_=1, predict=2)), "'predict'"),
        (in_metadata("attributes", lambda a: a.update(dual_=1)), "'dual_'"),
        (in_metadata("attributes", lambda a: a.update(n_features_in_=-12)), "in_ is -12"),
        (in_metadata("attributes", lambda a: a.pop("coef_")), "no coef_"),
        (in_metadata("parameters", lambda p: p.update(gamma=1)), "no parameter 'gamma'"),
        (in_metadata("classes", lambda c: c["labels"].update(kind=2**40)), "labels"),
        (in_metadata("classes", lambda c: c["labels"].update(values=[True, True])), "twice"),
    ],
)
def test_what_is_wrong_is_named(change, told, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(rebuilt(change))
    with pytest.raises(ValueError, match=told):
        load_model(path)


def test_a_small_file_cannot_claim_much_memory(tmp_path):
    def change(attributes):
        coef = attributes["coef_"]["sparse"]
        coef.update(expand=True, shape=[1, LARGEST_EXPANSION // 8 + 1])

    path = tmp_path / "model"
    path.write_bytes(rebuilt(in_metadata("attributes", change)))
    with pytest.raises(ValueError, match="would take"):
        load_model(path)


def test_a_header_nested_ten_thousand_deep_is_refused(tmp_path):
    deep, less = ("[" * depth + "]" * depth for depth in (10_000, 900))
    for content in (
        struct.pack("<Q", len(deep)) + deep.encode(),
        rebuilt(lambda h: h["__metadata__"].update(attributes='{"a_":' + deep + "}")),
        rebuilt(lambda h: h["__metadata__"].update(parameters='{"alpha":' + less + "}")),
    ):
        model = refused(content, tmp_path / "model")
        assert model is True or isinstance(model.alpha, list)


def test_files_of_others_are_refused(tmp_path):
    path = tmp_path / "model"
    save_file({"weight": np.ones((2, 3))}, path, metadata={"format": "np"})
    with pytest.raises(ValueError, match="not a model file of sparsvm"):
        load_model(path)
    for content in (b"", b"\x80\x04", b"PK\x03\x04" * 9, b"<html></html>" * 9, b"\0" * 64):
        assert refused(content, path) is True
