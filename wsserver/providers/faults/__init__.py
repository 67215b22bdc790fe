"""What an upstream's errors mean, wherever and in whose words it reports them."""
