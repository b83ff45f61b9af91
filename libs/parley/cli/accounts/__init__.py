"""Commands about users and sign-ins."""
