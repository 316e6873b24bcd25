"""A zip from strangers is read member by member, or refused in words; whatever it holds, nothing raises."""

import io
import os
import struct
import unicodedata
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lms_exports import RawName, zipped

from unrolled_grader.receiving.archive import ArchiveError, Member, ZipLimits, members

SMALL = ZipLimits(members=20, member=100_000, total=300_000, small=10_000, ratio=100)


def read(data: bytes, limits: ZipLimits = SMALL) -> list[Member]:
    return list(members(io.BytesIO(data), limits))


def only(data: bytes, limits: ZipLimits = SMALL) -> Member:
    (found,) = read(data, limits)
    return found


def test_a_sound_zip_gives_names_bytes_and_times() -> None:
    found = only(zipped([("ada/02.ipynb", b"text")]))
    assert (found.names, found.data, found.problem) == (("ada/02.ipynb",), b"text", "")
    assert found.when is not None
    assert found.when.astimezone().replace(tzinfo=None).isoformat() == "2027-01-20T09:30:00"


def test_a_time_in_utc_goes_before_the_local_one() -> None:
    entry = RawName(b"a")
    entry.extra = struct.pack("<HHBI", 0x5455, 5, 1, 1_800_000_000)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(entry, b"")
    found = only(stream.getvalue())
    assert found.when is not None
    assert found.when.timestamp() == 1_800_000_000
    assert only(zipped([("a", b"")], when=(1980, 1, 1, 0, 0, 0))).when is None


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../up.ipynb", "a/../../b", "..\\up", "C:\\x", "c:x", "\\\\host\\x"]
)
def test_a_name_that_leads_out_is_named_and_its_bytes_are_kept(name: str) -> None:
    bad, good = read(zipped([(name, b"evil"), ("good", b"fine")]))
    assert bad.problem == "its name leads out of the folder"
    assert (bad.data, good.data, good.problem) == (b"evil", b"fine", "")


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        ("山田太郎/02.ipynb".encode(), "山田太郎/02.ipynb"),
        ("山田太郎/02.ipynb".encode("cp932"), "山田太郎/02.ipynb"),
        ("表示/02.ipynb".encode("cp932"), "表示/02.ipynb"),  # a second byte that is a backslash
        ("müller_1_2_a.ipynb".encode("cp437"), "müller_1_2_a.ipynb"),
        ("García.ipynb".encode("cp1252"), "García.ipynb"),
        (unicodedata.normalize("NFD", "Zoë.ipynb").encode(), unicodedata.normalize("NFD", "Zoë.ipynb")),
    ],
)
def test_names_in_any_encoding_are_among_the_readings(raw: bytes, meant: str) -> None:
    assert meant in only(zipped([(raw, b"")])).names


def test_bombs_are_not_unpacked() -> None:
    assert "50 MB" in only(zipped([("a", bytes(60_000_000))]), ZipLimits()).problem
    assert "as a zip bomb does" in only(zipped([("a", bytes(90_000))])).problem
    noise = os.urandom(90_000)
    found = read(zipped([(str(number), noise) for number in range(5)]))
    assert [bool(one.problem) for one in found] == [False, False, False, True, True]
    with pytest.raises(ArchiveError, match="holds 21 files or more, at most 20"):
        read(zipped([(str(number), b"") for number in range(21)]))


def test_a_table_of_contents_that_lies_about_its_length_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(zipped([(f"{'n' * 400}{number}", b"") for number in range(40)]))
    end = data.rfind(b"PK\5\6")
    data[end + 8 : end + 12] = struct.pack("<HH", 1, 1)
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(ArchiveError, match="at most 20"):
        read(bytes(data))


def test_a_size_that_lies_is_found_out() -> None:
    data = bytearray(zipped([("a", bytes(90_000)), ("b", b"fine")]))
    central = data.find(b"PK\1\2")
    data[central + 24 : central + 28] = struct.pack("<I", 10)
    bad, good = read(bytes(data))
    assert "damaged" in bad.problem
    assert good.data == b"fine"


def test_what_is_no_file_or_cannot_be_opened_is_named_and_the_rest_goes_on() -> None:
    link = RawName(b"link")
    link.external_attr = 0o120777 << 16
    pipe = RawName(b"pipe")
    pipe.external_attr = 0o010644 << 16
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(link, b"/etc/passwd")
        archive.writestr(pipe, b"")
        archive.writestr("secret", b"x")
        archive.writestr("odd", b"x")
        archive.writestr("folder/", b"")
        archive.writestr("good", b"fine")
    data = bytearray(stream.getvalue())
    for name, at, value in ((b"secret", 8, 1), (b"odd", 10, 99)):
        entry = data.rfind(name) - 46
        data[entry + at] |= value
    found = read(bytes(data))
    assert [one.problem.partition(":")[0] for one in found] == [
        "it is a link, not a file",
        "it is a device or pipe, not a file",
        "it is encrypted",
        "it is damaged",
        "",
    ]
    assert found[0].data == b"/etc/passwd"
    assert found[-1].data == b"fine"


def test_a_name_that_stands_twice_is_marked() -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        data = zipped([("a", b"1"), ("a", b"2"), ("b", b"3")])
    assert [(one.data, one.twice) for one in read(data)] == [(b"1", True), (b"2", True), (b"3", False)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"hello", "it is not a zip"),
        (b"Rar!\x1a\x07", "a RAR archive"),
        (b"<!DOCTYPE html>", "a web page"),
        (zipped([("a", b"text" * 50)])[:-30], "cut off: its end is missing"),
        (zipped([("a", b"text")]).replace(b"PK\1\2", b"PK\1\3"), "damaged"),
    ],
)
def test_what_is_no_zip_is_refused_in_words(data: bytes, message: str) -> None:
    with pytest.raises(ArchiveError, match=message):
        read(data)


@settings(max_examples=150)
@given(st.data())
def test_a_damaged_zip_gives_a_reason_and_never_another_error(data: st.DataObject) -> None:
    zip_bytes = bytearray(zipped([("ada/02.ipynb", b"{}" * 30), ("太郎", b"x" * 99), ("c", b"")]))
    for at in data.draw(st.lists(st.integers(0, len(zip_bytes) - 1), min_size=1, max_size=6)):
        zip_bytes[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(zip_bytes)))
    try:
        found = read(bytes(zip_bytes[:cut] if data.draw(st.booleans()) else zip_bytes))
    except ArchiveError:
        return
    assert all(len(one.data) <= SMALL.member and one.names for one in found)


@settings(max_examples=100)
@given(st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=30))
def test_any_name_in_utf8_survives_with_and_without_the_flag(name: str) -> None:
    for flag in (True, False):
        names = [one.names for one in read(zipped([(name, b"")], flag=flag))]
        assert names in ([(name.replace("\\", "/"),)], [])  # none: the name of a folder
