import unittest

from words import longest


class LongestTest(unittest.TestCase):
    def test_the_longest_word_is_found(self) -> None:
        self.assertEqual(longest("to be or maybe not"), "maybe")

    def test_the_first_of_equals_is_found(self) -> None:
        self.assertEqual(longest("red and tan"), "red")

    def test_without_words_there_is_none(self) -> None:
        self.assertEqual(longest(""), "")


if __name__ == "__main__":
    unittest.main()
