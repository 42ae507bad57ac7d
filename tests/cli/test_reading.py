"""Every format gives the same table, and a mistake is told with its place."""

import gzip
import io
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from sparsvm.cli.columns import Wanted
from sparsvm.cli.failure import Failure
from sparsvm.cli.reading import read_table

NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
KIND = Wanted("kind")


def test_csv_with_names_gives_numbers_names_and_labels(flowers, numbers):
    table = read_table(str(flowers), KIND)
    np.testing.assert_array_equal(table.X, numbers[0])
    np.testing.assert_array_equal(table.y, numbers[1])
    assert table.names == NAMES


@pytest.mark.parametrize("mark", ["\t", ";"])
def test_tabs_and_semicolons_and_gzip_give_the_same(mark, flowers, numbers, tmp_path):
    text = flowers.read_text().replace(",", mark)
    path = tmp_path / ("a.tsv.gz" if mark == "\t" else "a.csv.gz")
    path.write_bytes(gzip.compress(("\ufeff" + text.replace("\n", "\r\n")).encode()))
    table = read_table(str(path), KIND)
    np.testing.assert_array_equal(table.X, numbers[0])
    assert table.names == NAMES and set(table.y) == set(numbers[1])


@pytest.mark.parametrize("reader", ["pyarrow", "polars"])
def test_parquet_gives_the_same(reader, flowers, numbers, tmp_path, monkeypatch):
    polars = pytest.importorskip("polars")
    pytest.importorskip(reader)
    if reader == "polars":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    polars.read_csv(flowers).write_parquet(tmp_path / "a.parquet")
    table = read_table(str(tmp_path / "a.parquet"), KIND)
    np.testing.assert_array_equal(table.X, numbers[0])
    np.testing.assert_array_equal(table.y, numbers[1])
    assert table.names == NAMES


def test_npz_gives_the_same_dense_and_sparse(numbers, tmp_path):
    X, y = numbers
    np.savez(tmp_path / "a.npz", X=X, y=y, feature_names=NAMES)
    table = read_table(str(tmp_path / "a.npz"), Wanted())
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, y)
    assert table.names == NAMES
    parts = sp.csr_matrix(X)
    arrays = {name: getattr(parts, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "b.npz", format=b"csr", y=y, **arrays)
    np.testing.assert_array_equal(read_table(str(tmp_path / "b.npz"), Wanted()).X.toarray(), X)


def test_svmlight_gives_the_same_with_indices_from_one(numbers, tmp_path):
    X, y = numbers
    codes = np.unique(y, return_inverse=True)[1]
    dump_svmlight_file(X, codes, str(tmp_path / "a.svm"), zero_based=False)
    table = read_table(str(tmp_path / "a.svm"), Wanted())
    np.testing.assert_allclose(table.X.toarray(), X)
    np.testing.assert_array_equal(table.y, codes)


@pytest.mark.parametrize("target", ["kind", "5", "-1"])
def test_the_target_is_found_by_name_and_position(target, flowers, numbers):
    np.testing.assert_array_equal(read_table(str(flowers), Wanted(target)).y, numbers[1])


def written(folder, text):
    path = folder / "t.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_name_that_is_a_number_is_a_name_before_it_is_a_position(tmp_path):
    table = read_table(written(tmp_path, "2,1,x\n0.5,a,7\n0.5,b,8\n"), Wanted("1"))
    assert table.y.tolist() == ["a", "b"] and table.names == ["2", "x"]


def test_a_table_without_names_has_positions(tmp_path):
    table = read_table(written(tmp_path, "1,2,0\n3,4,1\n"), Wanted("-1"))
    assert (
        table.names is None and table.X.tolist() == [[1, 2], [3, 4]] and table.y.tolist() == [0, 1]
    )


def test_the_names_of_rows_that_pandas_writes_are_no_feature(tmp_path):
    table = read_table(written(tmp_path, ",a,y\n0,1.5,u\n1,2.5,v\n"), Wanted("y"))
    assert table.names == ["a"] and table.X.tolist() == [[1.5], [2.5]]


def test_quotes_empty_lines_and_dropped_text(tmp_path):
    text = 'who,"a, b",y\n"Doe, J.",1,"x ""q"""\n\nRoe,2,z\n'
    table = read_table(written(tmp_path, text), Wanted("y", drop=("who",)))
    assert table.names == ["a, b"] and table.y.tolist() == ['x "q"', "z"]


def test_columns_are_taken_in_the_order_of_the_model(tmp_path):
    wanted = Wanted(None, False, features=["b", "a"])
    table = read_table(written(tmp_path, "a,text,b\n1,x,2\n3,y,4\n"), wanted)
    assert table.X.tolist() == [[2, 1], [4, 3]] and table.y is None


@pytest.mark.parametrize(
    ("text", "wanted", "sentence"),
    [
        ("a,b,y\n1,2,u\n1,x7,v\n", Wanted("y"), r"t.csv, line 3, column 'b' \(2\): 'x7' is not a"),
        ("a,b,y\n1,2,u\n1,,v\n", Wanted("y"), r"line 3, column 'b' \(2\): the value is missing"),
        ("a,b,y\n1,2,u\n1,NaN,v\n", Wanted("y"), r"line 3, column 'b' \(2\): the value is missing"),
        ("a,b,y\n1,2,u\n1,inf,v\n", Wanted("y"), r"line 3, column 'b' \(2\): .* infinite"),
        ("a,b,y\n1,2,u\n1,2,\n", Wanted("y"), r"line 3, column 'y' \(3\): there is no label"),
        ("a,b,y\n1,2,u\n1,2\n", Wanted("y"), r"line 3: 2 cells, but the table has 3"),
        ('a,y\n"1\n2",u\n', Wanted("y"), r"line 3, column 'a' \(1\)"),
        ("Age,y\n1,u\n", Wanted("age"), r"no column 'age' in .*; did you mean 'Age'\?"),
        ("petal_width,y\n1,u\n", Wanted("y", drop=("petal width",)), "did you mean 'petal_width'"),
        ("a,a,y\n1,2,u\n", Wanted("y"), "columns 1 and 2 have the same name, 'a'"),
        ("a,y\n1,u\n", Wanted("7"), "has 2 columns; --target asks for number 7"),
        ("1,2\n3,4\n", Wanted("y"), "no line of column names"),
        ("a,y\n1,u\n", Wanted(), "Name the column .* with --target; it has a, y"),
        ("a,y\n", Wanted("y"), "no rows"),
        ("", Wanted("y"), "is empty"),
        ("y\nu\n", Wanted("y"), "no column left"),
        ("a,y\n1,0.5\n2,1.5\n", Wanted("y"), "numbers with fractions, such as 0.5"),
        ("a,y\n1,u\n", Wanted(None, False, features=["a", "bb"]), "lacks the column 'bb', which"),
        ('a,y\n1,"u\n', Wanted("y"), "not a table of text"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(text, wanted, sentence, tmp_path):
    with pytest.raises(Failure, match=sentence) as failure:
        read_table(written(tmp_path, text), wanted)
    assert "\n" not in str(failure.value) and failure.value.code == 2


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"a,y\n\xe9,u\n", "not UTF-8 text: byte 0xe9"),
        ("a.parquet", b"nonsense", "not a whole Parquet file"),
        ("a.npz", b"nonsense", "not a whole npz file"),
        ("a.svm", b"1 1:2\n0 2:x\n", "a.svm, line 2: "),
        ("a.svm", b"1 0:2\n", "a.svm, line 1: .*indices from 1"),
        ("a.csv.gz", b"nonsense", "gzip"),
        ("a.doc", b"", "give --format, one of csv"),
    ],
)
def test_a_file_that_is_something_else_is_refused_in_a_line(name, content, sentence, tmp_path):
    if name == "a.parquet":
        pytest.importorskip("polars")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Failure, match=sentence) as failure:
        read_table(str(tmp_path / name), Wanted("y"))
    assert "\n" not in str(failure.value)


def test_an_archive_of_objects_is_not_unpickled(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([{}], dtype=object))
    with pytest.raises(Failure, match="plain arrays"):
        read_table(str(tmp_path / "a.npz"), Wanted())
    np.savez(tmp_path / "b.npz", Z=np.zeros((2, 2)))
    with pytest.raises(Failure, match="holds Z, but X is needed"):
        read_table(str(tmp_path / "b.npz"), Wanted())


def test_what_is_piped_in_is_read(flowers, numbers, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(flowers.read_bytes())))
    np.testing.assert_array_equal(read_table("-", KIND).X, numbers[0])
