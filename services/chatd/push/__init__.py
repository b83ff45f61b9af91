"""Push notifications to the devices of users who have closed the page."""
