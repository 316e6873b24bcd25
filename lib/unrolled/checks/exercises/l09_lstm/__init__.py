"""Write the step of an LSTM, then make a whole sequence faster with the same multiplications in fewer launches."""
