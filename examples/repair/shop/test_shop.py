import unittest

from shop import total


class TotalTest(unittest.TestCase):
    def test_without_a_discount_everything_is_paid(self) -> None:
        self.assertEqual(total([250, 150]), 400)

    def test_a_discount_is_taken_off(self) -> None:
        self.assertEqual(total([250, 150], discount_percent=10), 360)


if __name__ == "__main__":
    unittest.main()
