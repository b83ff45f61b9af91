import unittest

from invoice import shipping, tax, total


class InvoiceTest(unittest.TestCase):
    def test_tax_is_rounded_down(self) -> None:
        self.assertEqual(tax(1999), 379)

    def test_shipping_is_paid_for_small_orders_alone(self) -> None:
        self.assertEqual((shipping(1000), shipping(20000)), (490, 0))

    def test_the_total_contains_both(self) -> None:
        self.assertEqual(total([600, 400]), 1000 + 190 + 490)


if __name__ == "__main__":
    unittest.main()
