"""The page in a real Chromium: what a reader sees and does."""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from sparsvm import SparseSVC, SparseSVCCV, report
from sparsvm.penalties import L1

pytest.importorskip("plotly")
pytest.importorskip("jinja2")
pandas = pytest.importorskip("pandas")
EVIL = "<script>document.title='broken'</script><b>&amp;</b>"
LONG = "a_name_of_a_feature_that_is_" + "very_" * 20 + "long"


# The contrast of the Web Content Accessibility Guidelines, which ask for at least 4.5.
CONTRAST = """
const root = getComputedStyle(document.documentElement);
const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const luminance = (css) => {
  pen.fillStyle = css;
  pen.fillRect(0, 0, 1, 1);
  const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data]
    .map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const paper = luminance(getComputedStyle(document.body).backgroundColor);
return ['ink', 'soft', 'plus', 'minus', 'accent', 'good', 'warn'].map((name) => {
  const ink = luminance(root.getPropertyValue('--' + name));
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
});
"""
# Tables without caption or headings, pictures without words, fields without labels.
LACKING = """
const all = (selector) => [...document.querySelectorAll(selector)];
const headed = (t) => t.caption
  && t.querySelector('th[scope=col]') && t.querySelector('th[scope=row]');
return all('table').filter((t) => !headed(t)).length
  + all('.chart').filter((c) => !c.getAttribute('aria-label')).length
  + all('input').filter((i) => !i.labels.length).length;
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    wine = load_wine()
    names = [EVIL, LONG, *wine.feature_names[2:]]
    X = pandas.DataFrame(wine.data[:, [6, 9, 2, 3, 4, 5, 0, 7, 8, 1, 10, 11, 12]], columns=names)
    y = np.array(["<i>Barolo</i>", "Grignolino", "Barbera"])[wine.target]
    model = SparseSVCCV(penalty=L1(weights="scale"), n_alphas=12).fit(X[::2], y[::2])
    assert {0, 1} <= set(model.selected_features_)
    path = tmp_path_factory.mktemp("report") / "report.html"
    return report(model, X[1::2], y[1::2], path)


def test_it_loads_without_a_message_in_the_console_and_draws_every_picture(show, page):
    browser = show(page)
    assert browser.get_log("browser") == []
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('.chart')]"
        ".map((c) => c.querySelectorAll('svg').length)"
    )
    # The model of a cross-validation is its path's, which records no gaps on the way.
    assert len(drawn) == 4 and min(drawn) >= 1


def test_the_search_filters_the_features(show, page):
    browser = show(page)
    field = browser.find_element("id", "search")
    rows = browser.find_elements("css selector", "#feature-table tbody tr")
    assert all(row.is_displayed() for row in rows)
    field.send_keys("A_NAME_OF")
    assert [row.is_displayed() for row in rows].count(True) == 1
    assert browser.find_element("id", "search-count").text == "1 shown"
    field.send_keys("nonsense")
    assert browser.find_element("id", "nothing-found").is_displayed()
    field.clear()
    field.send_keys(" ")
    assert all(row.is_displayed() for row in rows)


def test_the_slider_moves_the_pictures_and_tells_what_they_show(show, page):
    browser = show(page)
    where = (
        "return ['score-chart', 'path-chart']"
        ".map((id) => document.getElementById(id).layout.shapes[1].x0)"
    )
    slider = browser.find_element("id", "alpha")
    before, words = browser.execute_script(where), browser.find_element("id", "alpha-words").text
    assert "the one chosen" in words
    slider.send_keys("\ue012" * 3)  # the arrow to the left: three larger alphas
    after, told = browser.execute_script(where), browser.find_element("id", "alpha-words").text
    assert after[0] == after[1] > before[0] and told != words
    assert slider.get_attribute("aria-valuetext") == told
    browser.find_element("id", "alpha-reset").click()
    assert browser.execute_script(where) == before


def test_markup_in_a_name_is_text_in_tables_and_in_pictures(show, page):
    browser = show(page)
    assert browser.title == "SparseSVCCV for 3 classes"
    cells = [cell.text for cell in browser.find_elements("css selector", "#feature-table tbody th")]
    assert EVIL in cells
    labels = [e.text for e in browser.find_elements("css selector", "#weight-chart .ytick text")]
    assert any(label.startswith("<script>document") for label in labels)
    classes = [e.text for e in browser.find_elements("css selector", "#weight-chart .xtick text")]
    assert "<i>Barolo</i>" in classes
    named = browser.find_elements("css selector", "#strongest .name")
    assert EVIL in [element.get_attribute("title") for element in named]


@pytest.mark.parametrize("width", [320, 375, 768])
def test_it_is_readable_at_the_width_of_a_phone(show, page, width):
    browser = show(page, width=width)
    sizes = "return [document.documentElement.scrollWidth, document.body.scrollWidth]"
    assert max(browser.execute_script(sizes)) <= width
    smallest = browser.execute_script(
        "return Math.min(...[...document.querySelectorAll('main p, main td, main th, main dd, li')]"
        ".filter((e) => e.offsetParent).map((e) => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert smallest >= 13


def test_a_long_table_scrolls_in_its_frame_and_the_page_ends_with_its_text(show, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 300)), rng.integers(0, 15, size=40)
    model = SparseSVC(penalty="l2").fit(X, y)
    for width in (375, 1200):
        browser = show(report(model, X, y, tmp_path / "r.html"), width=width)
        end, bottom, wide = browser.execute_script(
            "return [document.documentElement.scrollHeight, document.querySelector('main')"
            ".getBoundingClientRect().bottom, document.documentElement.scrollWidth]"
        )
        assert end <= bottom + 100 and wide <= width


def test_text_stands_out_from_the_paper_in_light_and_dark(show, page):
    papers = []
    for dark in (False, True):
        browser = show(page, dark=dark)
        assert min(browser.execute_script(CONTRAST)) >= 4.5
        papers.append(
            browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        )
    assert papers[0] != papers[1]


def test_tables_have_headings_and_pictures_have_words_for_those_who_do_not_see_them(show, page):
    browser = show(page)
    assert browser.execute_script(LACKING) == 0
