USE shop;
CREATE TABLE coupon (code varchar(20) PRIMARY KEY, uses int NOT NULL);
INSERT INTO coupon VALUES ('SPRING', 0);
