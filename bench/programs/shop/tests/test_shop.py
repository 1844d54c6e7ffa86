def test_page(page):
    print(page)
    assert "<p>" in page
